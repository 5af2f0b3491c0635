"""Reads a user with a nested address."""

from atlas.runtime.base import AgentBase


class UserProfile(AgentBase):
    async def execute(self, input_data):
        user = input_data["user"]
        return {
            "status": input_data["action"] + " completed",
            "user_name": user["name"],
            "city": user.get("address", {}).get("city", "unknown"),
        }
