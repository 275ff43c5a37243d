package persist

// Direct writes. A change that has to be on the disk before its reply is written by the
// keeper's goroutine, and other clients continue meanwhile. On the way three threads wake each
// other, which takes as long as a fast disk. So where few clients wait, and the disk is fast, the
// goroutine that has executed the commands writes the change itself, in its own thread: with
// one client a durable write takes 0.17 ms in place of 0.27. The other clients of this
// goroutine wait meanwhile, as all clients of Redis do.
//
// directClients is the most clients that wait: more of them share checkpoints better if the
// checkpoint waits for their commands, see gather.go. Limits.Direct is the longest duration of
// the last checkpoint.
const directClients = 4

// direct is the state of direct writes.
type direct struct {
	deferred bool // see Defer
	wanted   bool // there are changes to write
}

// Defer leaves the changes of this lock hold to TakeDirect, which must follow within it.
func (k *Keeper) Defer() { k.deferred = k.always }

// TakeDirect takes the deferred changes as a checkpoint and returns true if the caller is to
// write them, with WriteDirect. Otherwise it leaves them to the keeper's goroutine. waiting is
// the number of clients that wait for the disk.
func (k *Keeper) TakeDirect(waiting int) (taken bool) {
	if !k.endDefer() {
		return false
	}
	if k.looped = true; k.Gathering() {
		return false
	}
	if waiting > directClients {
		k.Wake()
		return false
	}
	return k.takeDirect()
}

// takeDirect takes the changes if the disk is fast and there is nothing else to write.
// Otherwise it leaves them to the keeper's goroutine.
func (k *Keeper) takeDirect() (taken bool) {
	if k.saveDuration < 0 || k.saveDuration > k.Limits.Direct || k.Failed != nil || k.NeedsFresh ||
		k.Rewrite != nil || k.ObsoleteUpTo != 0 || k.SaveRequested || k.Pending() || k.Loading != nil || k.suspended || k.Path == "" {
		k.Wake()
		return false
	}
	k.Take()
	return true
}

// EndDefer ends Defer: the keeper's goroutine writes the changes.
func (k *Keeper) EndDefer() {
	if k.endDefer() {
		k.Wake()
	}
}

func (k *Keeper) endDefer() (wanted bool) {
	wanted = k.wanted
	k.deferred, k.wanted = false, false
	return wanted
}

// WriteDirect writes the checkpoint of TakeDirect, unless something else holds the files for
// long, such as a backup: then the keeper's goroutine writes it. It is called without the lock.
func (k *Keeper) WriteDirect() {
	if !k.io.TryLock() {
		k.Wake()
		return
	}
	k.flush(true)
	account := func() {
		was := k.Stats.Generation
		if !k.accountAndGather() || k.Stats.Generation != was { // after a transaction a rewrite may be due
			k.Wake()
		}
	}
	if !k.host.MaintainUnlessBusy(account) { // the caller serves clients of a busy server
		k.done.Go(func() { k.host.Attempt(func() { k.host.Maintain(account) }) })
	}
}
