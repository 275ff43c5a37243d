// Package pubsub has the handlers of the publish/subscribe commands: SUBSCRIBE, PUBLISH,
// PUBSUB and the variants for patterns and sharded channels. The table of subscriptions is
// in package subscription; the engine delivers the messages, when the command that sends
// them commits (engine/pubsub.go).
package pubsub
