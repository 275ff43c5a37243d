package server

func setCommands() []Command { return nil }
