// Package e2e tests the commands as users run them: real processes, sockets and
// files. It has no code of its own.
package e2e
