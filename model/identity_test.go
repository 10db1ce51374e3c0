package model

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var updateIdentities = flag.Bool("update-identities", false, "write testdata/identities.txt: sessions and packed weights of models whose line changes are lost")

// What identifies a model stays as it is: a field that is added to Config changes
// no identity of models that do not have it, or sessions and packed weights that
// people have would be lost.
func TestIdentityStays(t *testing.T) {
	path := filepath.Join("testdata", "identities.txt")
	var now bytes.Buffer
	for _, dir := range tinyCases(t) {
		m, err := Open(dir, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config()
		m.Close()
		fmt.Fprintf(&now, "%s %x\n", filepath.Base(dir), sha256.Sum256([]byte(c.identity())))
	}
	if *updateIdentities {
		if err := os.WriteFile(path, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range bytes.Lines(now.Bytes()) {
		have[string(line)] = true
	}
	for line := range bytes.Lines(kept) {
		if !have[string(line)] {
			t.Errorf("the identity of %s has changed: sessions and packed weights would be lost", line)
		}
		delete(have, string(line))
	}
	for line := range have {
		t.Errorf("testdata/identities.txt: expected a line %s: go test ./model -run IdentityStays -update-identities", line)
	}
}

// No field of a configuration is left out of what identifies it.
func TestIdentityIsComplete(t *testing.T) {
	var c Config
	c.Rope = []RopeConfig{{}}
	check := func(name string, v reflect.Value) {
		before := c.identity()
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(other(t, name, v.Type()))
		if c.identity() == before {
			t.Errorf("%s is not part of the identity", name)
		}
		v.Set(old)
	}
	fields(reflect.ValueOf(&c).Elem(), "", check)
	fields(reflect.ValueOf(&c.Rope[0]).Elem(), "Rope.", check)
}

// fields calls do for the fields of a struct and of the structs in it.
func fields(v reflect.Value, in string, do func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		f, name := v.Field(i), in+v.Type().Field(i).Name
		switch {
		case f.Kind() == reflect.Struct:
			fields(f, name+".", do)
		case name != "Rope":
			do(name, f)
		}
	}
}

// other returns a value of a type that is not its zero value.
func other(t *testing.T, name string, typ reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.Append(v, other(t, name, typ.Elem())))
	default:
		t.Fatalf("%s: what else can a %v be?", name, typ)
	}
	return v
}
