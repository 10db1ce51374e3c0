// Package disk asks the system about disks.
package disk
