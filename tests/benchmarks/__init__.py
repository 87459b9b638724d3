"""What the engine and the bot cost, measured beside other people's engines and beside the bare database."""
