package server

func stringCommands() []Command { return nil }
