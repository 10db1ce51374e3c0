// Package folder opens the folders in which the server keeps things.
package folder
