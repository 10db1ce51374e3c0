"""smolagents: smol.py URL MODEL TEXT... A text is a turn of one conversation."""

import subprocess
import sys

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def run_command(command: str) -> str:
    """Run a command.

    Args:
        command: for the shell
    """
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


model = OpenAIModel(sys.argv[2], api_base=sys.argv[1] + "/v1", api_key="none")
agent = ToolCallingAgent(tools=[run_command], model=model, stream_outputs=True, max_steps=4)
for turn, text in enumerate(sys.argv[3:]):
    print(agent.run(text, reset=turn == 0))
