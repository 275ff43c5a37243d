package server

func sortCommands() []Command { return nil }
