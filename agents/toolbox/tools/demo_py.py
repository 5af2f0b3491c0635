"""Shows all kinds of parameters in Python."""

from typing import List, Literal, Optional


def run(
    boolean: bool,
    string: str,
    string_enum: Literal["foo", "bar"],
    integer: int,
    number: float,
    array: List[str],
    string_optional: Optional[str] = None,
    array_optional: Optional[List[str]] = None,
) -> str:
    """Shows all kinds of parameters of a tool in Python.

    Args:
        boolean: Define a required boolean property
        string: Define a required string property
        string_enum: Define a required string property with enum
        integer: Define a required integer property
        number: Define a required number property
        array: Define a required string array property
        string_optional: Define an optional string property
        array_optional: Define an optional string array property
    """
    return "\n".join(f"{name}: {value}" for name, value in locals().items())
