"""What an application was answered, as a run that grows: exchanges read, warned of, and added."""

from .alarms import ALARMS
from .run import LiveRun, alarms_in, live_run, take_in

__all__ = ["ALARMS", "LiveRun", "alarms_in", "live_run", "take_in"]
