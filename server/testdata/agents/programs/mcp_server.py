"""A server of the Model Context Protocol with one tool."""

import subprocess

from mcp.server import MCPServer

server = MCPServer("commands")


@server.tool()
def run_command(command: str) -> str:
    """Run a command."""
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


server.run()
