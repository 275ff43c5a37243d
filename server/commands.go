package server

func commandCommands() []Command { return nil }
