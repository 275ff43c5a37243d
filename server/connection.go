package server

func connectionCommands() []Command { return nil }
