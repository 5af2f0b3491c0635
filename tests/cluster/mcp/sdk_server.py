"""A server of the official Python SDK, or of fastmcp if that is the first argument, over standard input and output."""

import sys

if sys.argv[1:] == ["fastmcp"]:
    from fastmcp import FastMCP as Server
else:
    from mcp.server import MCPServer as Server

server = Server("adder")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run()
