package server

// families returns the rows of the command table. The file with the handlers of a
// family declares its rows.
func families() [][]Command {
	return [][]Command{
		sortedSetCommands(),
		sortedSetExpireCommands(),
		sortedSetTakeCommands(),
		keyCommands(),
		dumpCommands(),
		objectCommands(),
		sortCommands(),
		stringCommands(),
		bitmapCommands(),
		bitfieldCommands(),
		hyperloglogCommands(),
		geoCommands(),
		hashCommands(),
		hashExpireCommands(),
		setCommands(),
		listCommands(),
		streamCommands(),
		streamReadCommands(),
		streamGroupCommands(),
		streamInfoCommands(),
		pubsubCommands(),
		transactionCommands(),
		scriptCommands(),
		functionCommands(),
		connectionCommands(),
		aclCommands(),
		clientCommands(),
		commandCommands(),
		configCommands(),
		clusterCommands(),
		serverCommands(),
		saveCommands(),
		debugCommands(),
		moduleCommands(),
	}
}

// wiring returns the parts that an engine is made of.
func wiring() parts { return parts{commands: families(), loaded: (*Server).loadLibraries} }

// New returns a server that is ready to execute commands: through [Server.Do] and
// [Server.Dialer] at once, over the network with [Server.Serve]. It returns an
// error if a parameter is unknown or has an invalid value.
func New(o Options) (*Server, error) { return newServer(o, wiring()) }

// CheckConfig returns the error with which New, or ListenAndServe, would refuse the
// options: parameters, users, the files that they name, a file of the data that is not
// one or begins with damage. It opens no socket, locks nothing and changes nothing, so
// it can be called beside a running server. Whether ports are free and the rest of the
// file is sound only a start can tell.
func CheckConfig(o Options) error {
	return checkConfig(o, wiring())
}
