"""An experiment: its arms, its plan, its rounds of requests and the recorded run."""
