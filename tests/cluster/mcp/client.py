"""Calls the MCP gateway with the clients of the official SDK; prints one JSON document a line.

Usage: client.py URL PROGRAM: over HTTP at URL, in the protocol's version with sessions and in the one without,
then through `PROGRAM --server ... mcp stdio`.
"""

import asyncio
import json
import sys

from fastmcp import Client
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def say(**members):
    print(json.dumps(members), flush=True)


async def calls(name, session):
    """The same calls in every way of connecting."""
    tools = await session.list_tools()
    say(way=name, tools=[tool.name for tool in tools.tools])
    progress = []

    async def on_progress(number, total, message):
        progress.append(message)

    result = await session.call_tool(
        "agent_run", {"agent": "exec-echo", "input": {"message": "hello"}}, progress_callback=on_progress
    )
    say(way=name, output=result.structured_content["output"], progress=sorted(progress))
    refused = await session.call_tool("agent_run", {"agent": "exec-echo", "input": {"text": "hello"}})
    say(way=name, refused=refused.is_error, text=refused.content[0].text)


async def in_session(url):
    async with streamable_http_client(url) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            say(way="session", version=(await session.initialize()).protocol_version)
            await calls("session", session)


async def by_stdio(url, program):
    parameters = StdioServerParameters(command=program, args=["--server", url.removesuffix("/mcp"), "mcp", "stdio"])
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(read, write) as session:
            say(way="stdio", version=(await session.initialize()).protocol_version)
            await calls("stdio", session)


async def by_fastmcp(url):
    async with Client(url) as client:
        result = await client.call_tool("agent_describe", {"agent": "exec-echo"})
        say(way="fastmcp", name=result.structured_content["name"], schema=sorted(result.structured_content["input_schema"]))


async def to_agent(url):
    """Messages to one agent, with the official SDK and with fastmcp."""
    url = url.removesuffix("/mcp") + "/agents/exec-echo/mcp"
    progress = []

    async def on_progress(number, total, message):
        progress.append(message)

    async with streamable_http_client(url) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            tools = await session.list_tools()
            say(way="agent", tools=[tool.name for tool in tools.tools], prompts=len((await session.list_prompts()).prompts))
            answer = await session.call_tool("send_message", {"message": "hello"}, progress_callback=on_progress)
            say(way="agent", text=answer.content[0].text, progress=sorted(progress))
    async with Client(url) as client:
        health = await client.call_tool("get_health", {})
        say(way="agent", health=health.structured_content["status"])


async def main(url, program):
    await to_agent(url)
    await in_session(url)
    await by_fastmcp(url)
    await by_stdio(url, program)


asyncio.run(main(*sys.argv[1:]))
