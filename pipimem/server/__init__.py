"""The MCP server: the tools, resources and prompts of one workspace over the official SDK.

`protocol` answers requests, `stdio` and `http` carry them; `tools` is the table, one function each, over `served` (the
workspace in its scope), `giving` (what may be handed to a model), `resources`, `arguments` and `answers`. Only
`protocol`, `stdio` and `http` know the SDK.
"""
