package server

func sortedSetCommands() []Command { return nil }
