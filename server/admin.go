package server

func serverCommands() []Command { return nil }
