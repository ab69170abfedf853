"""The built-in connectors: each file is one, and its name is the connector's."""
