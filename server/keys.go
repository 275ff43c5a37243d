package server

func keyCommands() []Command { return nil }
