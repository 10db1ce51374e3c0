package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The description has every route of the router, with something said of it, and none
// that the router does not have.
func TestOpenAPI(t *testing.T) {
	s, srv := listen(t, Options{Models: []*Model{fakeModel(t, byteTokenizer(t), &script{})}})
	doc := get(t, srv.URL+"/ridge/openapi.json", 200)
	paths := doc["paths"].(map[string]any)
	n := 0
	for _, pattern := range s.patterns {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "...}", "}").Replace(path)
		op, _ := object(paths).at(path, strings.ToLower(method)).(map[string]any)
		if n++; op == nil || op["summary"] == "" || object(op).at("tags", 0) == "undescribed" || op["responses"] == nil {
			t.Errorf("%s is described as %v", pattern, op)
		}
	}
	ids := map[any]bool{}
	for path, methods := range paths {
		for method, op := range methods.(map[string]any) {
			n--
			url := strings.NewReplacer("{", "", "}", "").Replace(path)
			r, err := http.NewRequest(strings.ToUpper(method), srv.URL+url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, pattern := s.mux.Handler(r); pattern == "" || pattern == "/" && path != "/" {
				t.Errorf("%s %s: no such route", method, path)
			}
			id := op.(map[string]any)["operationId"]
			if ids[id] {
				t.Errorf("two operations are named %v", id)
			}
			ids[id] = true
		}
	}
	if n != 0 {
		t.Errorf("%d routes are described by others", n)
	}
	bodiesAreDescribed(t, doc)
	for _, pattern := range s.patterns {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.TrimSuffix(path, "{$}")
		body, _ := doc.at("paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema").(map[string]any)
		described := body["$ref"] != nil || body["type"] == "array" // a list has no name
		if method == http.MethodPost && described == slices.Contains(noBody, path) {
			t.Errorf("%s: the body is described as %v", pattern, body)
		}
	}
	schema, _ := doc.at("components", "schemas", "Step", "properties", "rows", "items", "$ref").(string)
	if schema != "#/components/schemas/StepRow" || doc.at("components", "schemas", "StepRow", "properties", "kind", "type") != "string" {
		t.Errorf("%v", doc.at("components", "schemas", "Step"))
	}
}

// noBody are the routes of POST that read no JSON, or none at all.
var noBody = []string{"/v1/files", "/api/blobs/{digest}", "/api/push", "/reset_prefix_cache", "/v1/batches/{id}/cancel", "/v1/responses/{id}/cancel"}

// Of the fields that peers have, those that a route reads are in its description,
// and those that it names as ignored are not.
func bodiesAreDescribed(t *testing.T, doc object) {
	t.Helper()
	tried := 0
	for _, p := range append(slices.Clone(allPeerFields), classifyFields) {
		body, _ := doc.at("paths", p.route, "post", "requestBody", "content", "application/json", "schema").(map[string]any)
		if body["$ref"] == nil {
			continue
		}
		fields := propertiesOf(doc, body)
		if p.under != "" {
			fields = propertiesOf(doc, fields[p.under])
		}
		for _, f := range p.fields {
			described := fields[f.name] != nil
			// num_ctx is read, and named where the model was opened with another.
			if tried++; described != (f.want != named) && f.name != "num_ctx" {
				t.Errorf("%s: %s.%s is described: %t, and is %v", p.route, p.under, f.name, described, f.want)
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d fields were looked for", tried)
	}
}

// propertiesOf returns the fields of a schema, be it named or one that may be null.
func propertiesOf(doc object, schema any) map[string]any {
	of, _ := schema.(map[string]any)
	if any, ok := of["anyOf"].([]any); ok {
		return propertiesOf(doc, any[0])
	}
	if ref, ok := of["$ref"].(string); ok {
		return propertiesOf(doc, doc.at("components", "schemas", strings.TrimPrefix(ref, "#/components/schemas/")))
	}
	fields, _ := of["properties"].(map[string]any)
	return fields
}
