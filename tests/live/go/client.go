// A Varlink client made of Debian's Go library alone: what it understands of the daemon, others' clients do, too.
// usage: client ADDRESS PID; prints one line for each thing that was seen to hold.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/varlink/go/varlink"
	"github.com/varlink/go/varlink/idl"
)

const own = "org.allocwatch.Tracer"

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "client: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func require(holds bool, what string) {
	if !holds {
		must(fmt.Errorf("it is not so"), what)
	}
	fmt.Println(what)
}

func checkDescription(ctx context.Context, c *varlink.Connection) {
	var vendor, product, version, url string
	var interfaces []string

	must(c.GetInfo(ctx, &vendor, &product, &version, &url, &interfaces), "GetInfo")
	require(product == "allocwatchd" && version != "" && strings.Join(interfaces, " ") == "org.varlink.service "+own, "info")
	description, err := c.GetInterfaceDescription(ctx, own)
	must(err, "GetInterfaceDescription")
	// This parser is older than capitals in the names of interfaces, which systemd's have, too.
	parsed, err := idl.New(strings.Replace(description, own, strings.ToLower(own), 1))
	must(err, "the description")
	require(parsed.Name == strings.ToLower(own) && len(parsed.Methods) >= 15 && len(parsed.Errors) >= 10 && len(parsed.Aliases) >= 10, "description")
}

func checkCalls(ctx context.Context, c *varlink.Connection, pid int) {
	var attached struct{ Pid, Tasks, Probes int }
	var status struct {
		Status struct {
			Pid   int
			State string
			Exact bool
		}
	}
	who := map[string]int{"pid": pid}

	must(c.Call(ctx, own+".Attach", who, &attached), "Attach")
	require(attached.Pid == pid && attached.Probes > 0, "attach")
	must(c.Call(ctx, own+".GetStatus", who, &status), "GetStatus")
	require(status.Status.Pid == pid && status.Status.State == "tracing" && status.Status.Exact, "status")
	err := c.Call(ctx, own+".GetStatus", map[string]int{"pid": 1 << 30}, nil)
	typed, ok := err.(*varlink.Error)
	require(ok && typed.Name == own+".NotTraced", "error")
}

// The interned tables of a snapshot, in pieces: how many traces and strings.
func countTables(ctx context.Context, c *varlink.Connection, pid int) (int, int) {
	rows, strs := 0, 0
	flags := uint64(varlink.Continues)

	receive, err := c.Send(ctx, own+".GetSnapshot", map[string]string{"snapshot": strconv.Itoa(pid)}, varlink.More)
	must(err, "GetSnapshot")
	for flags&varlink.Continues != 0 {
		var reply struct {
			Tables struct {
				Strings []string
				Traces  [][]int64
			}
		}
		flags, err = receive(ctx, &reply)
		must(err, "GetSnapshot's reply")
		rows += len(reply.Tables.Traces)
		strs += len(reply.Tables.Strings)
	}
	return rows, strs
}

func checkStream(ctx context.Context, c *varlink.Connection, pid int) {
	rows, strs := countTables(ctx, c, pid)

	// Nothing may have been allocated yet.
	for end := time.Now().Add(30 * time.Second); rows == 0 && time.Now().Before(end); {
		rows, strs = countTables(ctx, c, pid)
	}
	require(rows > 0 && strs > 0, "stream")
	must(c.Call(ctx, own+".Detach", map[string]int{"pid": pid}, nil), "Detach")
	require(true, "detach")
}

// Of one process: what is kept of it, and its end, which ends the stream.  The daemon is asked by another connection.
func checkEvents(ctx context.Context, address string, c *varlink.Connection, pid int) {
	var kinds []string
	flags := uint64(varlink.Continues)
	who := map[string]int{"pid": pid}

	must(c.Call(ctx, own+".Attach", who, nil), "Attach")
	receive, err := c.Send(ctx, own+".Subscribe", who, varlink.More)
	must(err, "Subscribe")
	for flags&varlink.Continues != 0 {
		var reply struct {
			Event struct {
				Kind     string
				Snapshot *struct{ Id, Name string }
			}
		}
		flags, err = receive(ctx, &reply)
		must(err, "Subscribe's reply")
		kinds = append(kinds, reply.Event.Kind)
		if reply.Event.Kind == "subscribed" {
			other, err := varlink.NewConnection(ctx, address)
			must(err, "connect")
			must(other.Call(ctx, own+".TakeSnapshot", who, nil), "TakeSnapshot")
			must(other.Call(ctx, own+".Detach", who, nil), "Detach")
			other.Close()
		}
	}
	require(strings.Join(kinds, " ") == "subscribed snapshot snapshot detached", "events")
}

func main() {
	ctx := context.Background()
	pid, err := strconv.Atoi(os.Args[2])
	must(err, "the PID")
	c, err := varlink.NewConnection(ctx, os.Args[1])
	must(err, "connect")
	checkDescription(ctx, c)
	checkCalls(ctx, c, pid)
	checkStream(ctx, c, pid)
	checkEvents(ctx, os.Args[1], c, pid)
	c.Close()
}
