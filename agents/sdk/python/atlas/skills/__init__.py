"""Skills: functions that agents share."""
