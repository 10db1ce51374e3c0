"""The Agents SDK: agents_sdk.py responses|chat|mcp URL TEXT. Its session is a file."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from agents import (Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner,
                    SQLiteSession, function_tool, set_tracing_disabled)
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI


@function_tool
def run_command(command: str) -> str:
    """Run a command.

    Args:
        command: for the shell
    """
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


async def main(api: str, url: str, text: str) -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url + "/v1", api_key="none")
    name = (await client.models.list()).data[0].id
    form = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    agent = Agent(name="worker", instructions="You run commands.", model=form(name, client))
    async with AsyncExitStack() as stack:
        if api == "mcp":
            params = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_server.py"))]}
            agent.mcp_servers = [await stack.enter_async_context(MCPServerStdio(params, client_session_timeout_seconds=120))]
        else:
            agent.tools = [run_command]
        run = Runner.run_streamed(agent, text, session=SQLiteSession("s", "session.db"))
        async for event in run.stream_events():
            print(event.type)
        print(run.final_output)


asyncio.run(main(*sys.argv[1:]))
