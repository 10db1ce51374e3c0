package watch

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"ridge/server/wire"
)

// object is a JSON object.
type object = map[string]any

// variable is a part of a pattern that stands for any text.
var variable = regexp.MustCompile(`\{([a-z]+)(?:\.\.\.)?\}`)

// openAPI describes routes by their patterns (OpenAPI 3.1). bodies are what those of
// other packages read.
func openAPI(version string, patterns []string, bodies map[string]any) object {
	paths, schemas := object{}, object{}
	for _, p := range patterns {
		method, url, ok := strings.Cut(p, " ")
		if !ok {
			continue // what answers to all other paths
		}
		d := describe(p)
		if b := bodies[p]; b != nil {
			d.reads = b
		} else if b := bodies[same[p]]; b != nil {
			d.reads = b
		}
		op := object{"summary": d.summary, "tags": []string{d.tag}, "operationId": operationID(p), "responses": d.responses(schemas)}
		var params []object
		for _, v := range variable.FindAllStringSubmatch(url, -1) {
			params = append(params, object{"name": v[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, q := range d.query {
			name, about, _ := strings.Cut(q, " ")
			params = append(params, object{"name": name, "in": "query", "description": about, "schema": object{"type": "string"}})
		}
		if params != nil {
			op["parameters"] = params
		}
		if method == http.MethodPost || d.reads != nil {
			op["requestBody"] = d.body(schemas)
		}
		url = variable.ReplaceAllString(strings.TrimSuffix(url, "{$}"), "{$1}")
		if paths[url] == nil {
			paths[url] = object{}
		}
		paths[url].(object)[strings.ToLower(method)] = op
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "ridge", "version": version, "description": "The APIs of OpenAI, Ollama and Anthropic, routes of llama-server, vLLM and Text Generation Inference, and those under /ridge/, which show what the engines do. docs/server.md has the fields beyond those of the APIs, docs/inside.md the routes under /ridge/."},
		"paths":   paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"key": object{"type": "http", "scheme": "bearer", "description": "an API key, if the server has some"}}},
		"security": []object{{}, {"key": []string{}}},
	}
}

// operationID names a route.
func operationID(pattern string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(pattern, "_"), "_")
}

// description is what is said of a route.
type description struct {
	summary, tag string
	query        []string
	reads, gives any    // values of the types of the bodies; nil for an object of the API's
	kind         string // of the answer, "" for JSON
}

func (d *description) responses(schemas object) object {
	content := object{"schema": object{"type": "object"}}
	if d.gives != nil {
		content = object{"schema": schemaOf(reflect.TypeOf(d.gives), schemas)}
	}
	kind := d.kind
	if kind == "" {
		kind = "application/json"
	} else {
		content = object{"schema": object{"type": "string"}}
	}
	return object{"200": object{"description": "the answer", "content": object{kind: content}},
		"default": object{"description": "an error in the form of the route's API, which names what was expected and what was found"}}
}

func (d *description) body(schemas object) object {
	schema := object{"type": "object"}
	if d.reads != nil {
		schema = schemaOf(reflect.TypeOf(d.reads), schemas)
	}
	return object{"content": object{"application/json": object{"schema": schema}}}
}

// schemaOf describes a type. Structs are named once. Of what reads itself only is
// said what it wants.
func schemaOf(t reflect.Type, schemas object) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[wire.Integer]():
		return object{"type": "integer"}
	case reflect.TypeFor[wire.Idle]():
		return object{"description": "changes nothing"}
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		if v, ok := reflect.Zero(t).Interface().(interface{ Wants() string }); ok {
			return object{"description": v.Wants()}
		}
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []object{schemaOf(t.Elem(), schemas), {"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem(), schemas)}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		if t.Name() == "" {
			return fieldsOf(t, schemas)
		}
		name := schemaName(t)
		if schemas[name] == nil {
			schemas[name] = object{} // for types that have themselves
			schemas[name] = fieldsOf(t, schemas)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	return object{"type": "integer"}
}

// here is the path of this package, whose types are written, but for one.
var here = reflect.TypeFor[API]().PkgPath()

// schemaName names a type: those of other packages with the package before.
func schemaName(t reflect.Type) string {
	if t.PkgPath() == here {
		return t.Name()
	}
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	return title(path.Base(t.PkgPath())) + title(t.Name())
}

// fieldsOf describes the fields of a struct, those of embedded ones too. Bodies that
// are read may leave any of them out.
func fieldsOf(t reflect.Type, schemas object) object {
	fields, required := object{}, []string{}
	addFields(fields, &required, t, schemas)
	out := object{"type": "object", "properties": fields}
	if t.PkgPath() == here {
		out["required"] = required
	}
	return out
}

func addFields(fields object, required *[]string, t reflect.Type, schemas object) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			addFields(fields, required, f.Type, schemas)
			continue
		}
		if name == "" || name == "-" || fields[name] != nil { // the outer one counts
			continue
		}
		fields[name] = schemaOf(f.Type, schemas)
		if !strings.Contains(opts, "omitempty") {
			*required = append(*required, name)
		}
	}
}

// openapi answers GET /ridge/openapi.json.
func (s *API) openapi(w http.ResponseWriter, _ *http.Request) error {
	patterns := slices.Sorted(slices.Values(s.Patterns()))
	wire.WriteJSON(w, http.StatusOK, openAPI(s.Version, patterns, s.Bodies))
	return nil
}
