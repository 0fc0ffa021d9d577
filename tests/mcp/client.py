"""A session of the official Python client with `reflect mcp`; prints what happens.

client.py MODE COMMAND [ARGUMENT...]

MODE is `legacy` for the `initialize` handshake, or `auto` for the newest protocol.
"""

import json
import os
import sys

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters


def show(what, value):
    print(f"{what}: {json.dumps(value, ensure_ascii=False)}")


async def on_progress(progress, total, message):
    print(f"  progress {progress:.3f} of {total:g}: {message}")


def show_result(result):
    print(f"  error: {result.is_error}")
    for block in result.content:
        for line in block.text.splitlines():
            print(f"  | {line}")
    outcome = result.structured_content or {}
    for key in ("success", "convergence_reason", "output", "overall_score", "iterations_used"):
        if key in outcome:
            show(f"  {key}", outcome[key])


async def main(mode, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        show("protocol", client.protocol_version)
        show("server", client.server_info.name)
        print("tools:")
        for tool in (await client.list_tools()).tools:
            arguments = ", ".join(tool.input_schema.get("properties", {}))
            print(f"  {tool.name}({arguments}) read_only={tool.annotations.read_only_hint}")

        print("list_criteria:")
        show_result(await client.call_tool("list_criteria", {}))

        print("draft:")
        call = {"prompt": "Write a line.", "criteria": "house"}
        show_result(await client.call_tool("draft", call, progress_callback=on_progress))

        print("draft with unknown criteria:")
        unknown = {"prompt": "Write a line.", "criteria": "../house"}
        show_result(await client.call_tool("draft", unknown))

        print("draft, cancelled while it is written:")
        with anyio.CancelScope() as scope:

            async def cancel(progress, total, message):
                await on_progress(progress, total, message)
                scope.cancel()

            await client.call_tool("draft", call, progress_callback=cancel)
        show("  cancelled", scope.cancelled_caught)
        while True:
            run = await client.call_tool("show_run", {"run_id": "last"})
            if run.structured_content["convergence_reason"] is not None:
                break
            await anyio.sleep(0.05)
        show("  convergence_reason", run.structured_content["convergence_reason"])
    print("closed")


anyio.run(main, *sys.argv[1:])
