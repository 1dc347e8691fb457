"""What a chat template loses: calls and turns that do not come back as they were."""
