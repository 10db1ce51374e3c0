package grammar

// conditionCases are cases of the keywords that negate, depend, count and compare.
var conditionCases = []schemaCase{
	// not.
	{name: "not a type", schema: `{"not":{"type":"string"}}`, good: []string{`1`, `1.5`, `null`, `[]`, `{"a":"x"}`}, bad: []string{`""`, `"a"`}},
	{name: "not several types", schema: `{"not":{"type":["integer","object","array"]}}`, good: []string{`"a"`, `1.5`, `-0.25`, `true`}, bad: []string{`1`, `1.0`, `-0`, `{}`, `[1]`}},
	{name: "fractions only", schema: `{"type":"number","not":{"type":"integer"}}`, good: []string{`0.5`, `-12.001`, `1.50`}, bad: []string{`1`, `1.0`, `-3.000`, `"a"`}, narrow: []string{`5e-1`}},
	{name: "not texts", schema: `{"type":"string","not":{"enum":["a","ab",""]}}`, good: []string{`"b"`, `"aa"`, `"abc"`, `"\n"`}, bad: []string{`"a"`, `"ab"`, `""`}, narrow: []string{`"\u0062"`}},
	{name: "not a number", schema: `{"type":"number","minimum":-1,"not":{"const":0}}`, good: []string{`-1`, `0.1`, `1`, `-0.5`, `10`}, bad: []string{`0`, `0.0`, `-0`, `-0.00`, `-2`}},
	{name: "not some integers", schema: `{"type":"integer","minimum":1,"maximum":6,"not":{"enum":[1,3,6,9]}}`, good: []string{`2`, `4`, `5`}, bad: []string{`1`, `3`, `6`, `0`, `9`}},
	{name: "not a truth", schema: `{"type":["boolean","null"],"not":{"enum":[true,null]}}`, good: []string{`false`}, bad: []string{`true`, `null`}},
	{name: "not a list", schema: `{"type":"array","items":{"enum":[1,2]},"maxItems":2,"not":{"const":[1,2]}}`, good: []string{`[]`, `[1]`, `[2]`, `[1,1]`, `[2,2]`, `[2,1]`}, bad: []string{`[1,2]`, `[1,2,1]`}},
	{name: "not an object", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"not":{"enum":[{"a":1},{"a":1,"b":2}]}}`, good: []string{`{}`, `{"a":2}`, `{"a":1,"b":1}`, `{"b":2}`}, bad: []string{`{"a":1}`, `{"a":1,"b":2}`}},
	{name: "not a pattern", schema: `{"type":"string","not":{"pattern":"^test-|\\s"}}`, good: []string{`""`, `"test"`, `"a-test-"`}, bad: []string{`"test-"`, `"test-x"`, `"a b"`, `"a\u00a0b"`, `"\u2028"`}},
	{name: "not a length", schema: `{"type":"string","not":{"minLength":2,"maxLength":3}}`, good: []string{`""`, `"a"`, `"abcd"`, `"\u0061"`}, bad: []string{`"ab"`, `"abc"`}},
	{name: "not a range", schema: `{"type":"number","not":{"minimum":2,"exclusiveMaximum":5}}`, good: []string{`1.99`, `5`, `6`, `-2`}, bad: []string{`2`, `3.5`, `4.999`}},
	{name: "not a multiple", schema: `{"type":"number","not":{"multipleOf":0.5}}`, good: []string{`0.25`, `-1.1`, `2.501`}, bad: []string{`1`, `0.5`, `1.50`, `0`, `-2.500`}},
	{name: "not a multiple of an integer", schema: `{"type":"integer","not":{"anyOf":[{"multipleOf":2},{"multipleOf":3}]}}`, good: []string{`1`, `5`, `-7`, `25`}, bad: []string{`0`, `2`, `3`, `9`, `-4`}},
	{name: "without a member", schema: `{"type":"object","not":{"required":["a"]}}`, good: []string{`{}`, `{"b":1,"aa":2}`}, bad: []string{`{"a":1}`, `{"b":1,"a":null}`}},
	{name: "not both members", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"not":{"required":["a","b"]}}`, good: []string{`{}`, `{"a":1}`, `{"b":1,"c":1}`, `{"a":1,"c":2}`}, bad: []string{`{"a":1,"b":2}`, `{"a":1,"b":2,"c":3}`}},
	{name: "not a value of a member", schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},"not":{"properties":{"a":{"enum":["x","y"]}},"required":["a"]}}`, good: []string{`{}`, `{"a":"z"}`, `{"a":"xy","b":null}`}, bad: []string{`{"a":"x"}`, `{"a":"y","b":null}`}},
	{name: "not, to the letter", schema: `{"not":{"properties":{"a":{"type":"integer"}}}}`, options: open, good: []string{`{"a":"x"}`, `{"a":1.5,"b":2}`}, bad: []string{`{}`, `1`, `{"a":1}`, `{"b":2}`}},
	{name: "not a tuple", schema: `{"type":"array","items":{"type":"integer"},"not":{"prefixItems":[{"const":1},{"minimum":5}]}}`, good: []string{`[2]`, `[1,4]`, `[3,9,9]`}, bad: []string{`[]`, `[1]`, `[1,5]`, `[1,6,1]`}},
	{name: "not all items", schema: `{"type":"array","items":{"type":"integer"},"not":{"items":{"minimum":0}}}`, good: []string{`[-1]`, `[1,-1,1]`}, bad: []string{`[]`, `[1,2]`}},
	{name: "not all items after a tuple", schema: `{"type":"array","not":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}`, good: []string{`[1]`, `["a","b"]`, `["a",1,null]`, `[[],1]`}, bad: []string{`[]`, `["a"]`, `["a",1,2]`}},
	{name: "not a number of items", schema: `{"type":"array","not":{"minItems":1,"maxItems":2}}`, good: []string{`[]`, `[1,2,3]`}, bad: []string{`[1]`, `["a",[]]`}},
	{name: "twice not", schema: `{"not":{"not":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`, good: []string{`{"a":1}`}, bad: []string{`{}`, `1`, `{"a":"x"}`}},
	{name: "not of combinations", schema: `{"type":"integer","not":{"allOf":[{"minimum":3},{"anyOf":[{"maximum":5},{"const":9}]}]}}`, good: []string{`2`, `6`, `8`, `10`}, bad: []string{`3`, `5`, `9`}},
	{name: "not one of", schema: `{"type":"integer","not":{"oneOf":[{"minimum":3},{"maximum":6}]}}`, good: []string{`3`, `6`}, bad: []string{`2`, `7`}},
	{name: "not by reference", schema: `{"$defs":{"small":{"type":"integer","maximum":9}},"type":"integer","not":{"$ref":"#/$defs/small"}}`, good: []string{`10`, `123`}, bad: []string{`9`, `-1`}},
	{name: "not a list of lists", schema: `{"$defs":{"l":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/l"}},"required":["v"]}},"type":"object","not":{"$ref":"#/$defs/l"}}`, options: Options{Open: true, AnyOrder: true}, good: []string{`{}`, `{"v":"x"}`, `{"v":1,"next":{"v":2,"next":3}}`, `{"next":{}}`}, bad: []string{`{"v":1}`, `{"v":1,"next":{"v":2}}`}},
	{name: "names that are not", schema: `{"type":"object","propertyNames":{"not":{"enum":["id","_"]}},"additionalProperties":{"type":"integer"}}`, good: []string{`{}`, `{"a":1,"idx":2}`}, bad: []string{`{"id":1}`, `{"a":1,"_":2}`}},
	{name: "names of several kinds", schema: `{"type":"object","propertyNames":{"anyOf":[{"maxLength":1},{"pattern":"^x-"},{"const":"ab"}]}}`, good: []string{`{"a":1,"x-a":2,"ab":3}`}, bad: []string{`{"abc":1}`, `{"xx":1}`}},

	// if, then, else.
	{name: "condition", schema: `{"type":"object","properties":{"kind":{"enum":["card","cash"]},"number":{"type":"string"},"note":{"type":"string"}},"required":["kind"],"if":{"properties":{"kind":{"const":"card"}}},"then":{"required":["number"]}}`,
		good: []string{`{"kind":"cash"}`, `{"kind":"card","number":"1"}`, `{"kind":"cash","number":"1","note":""}`}, bad: []string{`{"kind":"card"}`, `{"kind":"card","note":""}`, `{}`}},
	{name: "condition with two ends", schema: `{"type":"object","properties":{"unit":{"type":"string"},"value":{"type":"number"}},"required":["unit","value"],"if":{"properties":{"unit":{"const":"%"}}},"then":{"properties":{"value":{"minimum":0,"maximum":100}}},"else":{"properties":{"value":{"exclusiveMinimum":0}}}}`,
		good: []string{`{"unit":"%","value":0}`, `{"unit":"%","value":100}`, `{"unit":"m","value":101}`}, bad: []string{`{"unit":"%","value":101}`, `{"unit":"m","value":0}`, `{"unit":"m","value":-1}`}},
	{name: "condition without a member", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"if":{"required":["a"]},"else":{"required":["b"]}}`, good: []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":2}`}, bad: []string{`{}`}},
	{name: "condition that holds in absence", schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"]}}`, good: []string{`{"a":"y"}`, `{"b":1}`, `{"a":"x","b":1}`}, bad: []string{`{}`, `{"a":"x"}`}},
	{name: "condition on a type", schema: `{"type":["string","integer"],"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":5}}`, good: []string{`"ab"`, `5`}, bad: []string{`"a"`, `4`}},
	{name: "condition that is false", schema: `{"type":"integer","if":false,"then":{"minimum":3},"else":{"maximum":2}}`, good: []string{`2`}, bad: []string{`3`}},
	{name: "condition that forbids", schema: `{"type":"integer","if":{"minimum":3},"then":false}`, good: []string{`2`}, bad: []string{`3`}},
	{name: "condition alone", schema: `{"type":"integer","if":{"minimum":3}}`, good: []string{`1`, `3`}, bad: []string{`"a"`}},
	{name: "no condition", schema: `{"type":"integer","then":false,"else":false}`, good: []string{`1`}, bad: []string{`"a"`}},
	{name: "conditions in turn", schema: `{"type":"object","properties":{"c":{"enum":["us","nl","de"]},"zip":{"type":"string"}},"required":["c","zip"],"allOf":[{"if":{"properties":{"c":{"const":"us"}}},"then":{"properties":{"zip":{"pattern":"^[0-9]{5}$"}}}},{"if":{"properties":{"c":{"const":"nl"}}},"then":{"properties":{"zip":{"pattern":"^[0-9]{4} [A-Z]{2}$"}}}},{"if":{"properties":{"c":{"const":"de"}}},"then":{"properties":{"zip":{"pattern":"^D"}}}}]}`,
		good: []string{`{"c":"us","zip":"12345"}`, `{"c":"nl","zip":"1234 AB"}`, `{"c":"de","zip":"D1"}`}, bad: []string{`{"c":"us","zip":"1234 AB"}`, `{"c":"nl","zip":"12345"}`, `{"c":"de","zip":"1"}`}},
	{name: "condition in a condition", schema: `{"type":"integer","if":{"minimum":10},"then":{"multipleOf":5},"else":{"if":{"minimum":0},"then":{"multipleOf":2}}}`, good: []string{`10`, `15`, `8`, `-3`}, bad: []string{`11`, `7`, `1`}},
	{name: "condition on items", schema: `{"type":"array","items":{"type":"integer"},"if":{"minItems":2},"then":{"items":{"minimum":5}},"else":{"items":{"maximum":1}}}`, good: []string{`[]`, `[1]`, `[5,6]`}, bad: []string{`[2]`, `[5,1]`}},

	// Members that depend on others.
	{name: "dependent members", schema: `{"type":"object","properties":{"card":{"type":"integer"},"address":{"type":"string"},"name":{"type":"string"}},"dependentRequired":{"card":["address"]}}`, good: []string{`{}`, `{"name":""}`, `{"address":""}`, `{"card":1,"address":""}`, `{"card":1,"address":"","name":""}`}, bad: []string{`{"card":1}`, `{"card":1,"name":""}`}},
	{name: "members that need each other", schema: `{"type":"object","properties":{"a":true,"b":true,"c":true},"dependentRequired":{"a":["b"],"b":["a"],"c":[]}}`, good: []string{`{}`, `{"a":1,"b":2}`, `{"c":1}`, `{"a":1,"b":1,"c":1}`}, bad: []string{`{"a":1}`, `{"b":1,"c":1}`}},
	{name: "dependent schemas", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentSchemas":{"a":{"properties":{"b":{"minimum":5}},"required":["b"]},"b":{"maxProperties":2}}}`, good: []string{`{}`, `{"b":1}`, `{"a":1,"b":5}`}, bad: []string{`{"a":1}`, `{"a":1,"b":4}`}},
	{name: "dependent and forbidden", schema: `{"type":"object","properties":{"a":true,"b":true},"dependentSchemas":{"a":false}}`, good: []string{`{}`, `{"b":1}`}, bad: []string{`{"a":1}`, `{"a":1,"b":1}`}},
	{name: "dependents, to the letter", schema: `{"dependentRequired":{"a":["b"]}}`, options: Options{Open: true, AnyOrder: true}, good: []string{`1`, `{}`, `{"x":1,"b":2}`, `{"b":1,"a":2}`, `{"a":1,"c":3,"b":2}`}, bad: []string{`{"a":1}`, `{"x":1,"a":2}`}},
	{name: "old dependencies", schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"dependencies":{"a":["b"],"b":{"properties":{"c":{"minimum":3}}}}}`, good: []string{`{}`, `{"a":1,"b":1}`, `{"b":1,"c":3}`, `{"c":1}`}, bad: []string{`{"a":1}`, `{"b":1,"c":2}`}},

	// contains.
	{name: "contains", schema: `{"type":"array","items":{"type":"integer"},"contains":{"minimum":5}}`, good: []string{`[5]`, `[1,6,1]`, `[7,8]`}, bad: []string{`[]`, `[1,2]`, `["a",5]`}},
	{name: "contains, with bounds", schema: `{"type":"array","items":{"enum":[1,2,3]},"contains":{"const":1},"minContains":2,"maxContains":3}`, good: []string{`[1,1]`, `[2,1,3,1,2,1]`}, bad: []string{`[1]`, `[1,1,1,1]`, `[2,3]`}},
	{name: "contains at most", schema: `{"type":"array","items":{"type":"string"},"contains":{"pattern":"^x"},"minContains":0,"maxContains":1}`, good: []string{`[]`, `["a"]`, `["xa","b"]`}, bad: []string{`["x","x"]`}},
	{name: "contains none", schema: `{"type":"array","contains":{"type":"string"},"minContains":0,"maxContains":0}`, good: []string{`[]`, `[1,[],null]`}, bad: []string{`["a"]`, `[1,"a"]`}},
	{name: "contains without effect", schema: `{"type":"array","contains":{"type":"string"},"minContains":0}`, good: []string{`[]`, `[1]`}, bad: []string{`1`}},
	{name: "bounds without contains", schema: `{"type":"array","minContains":3,"maxContains":1}`, good: []string{`[]`, `[1]`}, bad: []string{`1`}},
	{name: "contains and a number of items", schema: `{"type":"array","items":{"type":"integer"},"contains":{"const":7},"minItems":2,"maxItems":3}`, good: []string{`[7,1]`, `[1,1,7]`, `[7,7,7]`}, bad: []string{`[7]`, `[1,2,3]`, `[1,2,3,7]`}},
	{name: "contains in a tuple", schema: `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"contains":{"enum":[3,"a"]},"maxContains":1}`, good: []string{`[3]`, `[3,"b",null]`, `[1,"a"]`}, bad: []string{`[]`, `[1]`, `[3,"a"]`, `[1,"b",null]`}},
	{name: "contains of several kinds", schema: `{"type":"array","items":{"type":"integer"},"allOf":[{"contains":{"minimum":5}},{"contains":{"multipleOf":2},"maxContains":1}]}`, good: []string{`[6]`, `[7,2]`, `[1,2,9]`}, bad: []string{`[2]`, `[7]`, `[6,2]`}},
	{name: "contains an object", schema: `{"type":"array","items":{"type":"object","properties":{"role":{"type":"string"},"name":{"type":"string"}},"required":["role"]},"contains":{"properties":{"role":{"const":"admin"}}},"maxContains":1}`, good: []string{`[{"role":"admin"}]`, `[{"role":"u","name":""},{"role":"admin"}]`}, bad: []string{`[]`, `[{"role":"u"}]`, `[{"role":"admin"},{"role":"admin"}]`}},
	{name: "contains itself", schema: `{"type":"array","contains":{"$ref":"#"},"minContains":0,"maxContains":1}`, good: []string{`[]`, `[[]]`, `[1,[[]],2]`, `[[1]]`}, bad: []string{`[[],[]]`, `[[[],[]],1,[],[[]]]`}},

	// uniqueItems.
	{name: "unique choices", schema: `{"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true}`, good: []string{`[]`, `["b"]`, `["c","a"]`, `["b","a","c"]`}, bad: []string{`["a","a"]`, `["a","b","a"]`, `["d"]`}},
	{name: "unique choices, some of them", schema: `{"type":"array","items":{"enum":["a","b","c",1,1.0,2]},"uniqueItems":true,"minItems":2,"maxItems":3}`, good: []string{`["a",1]`, `[1.0,2,"b"]`}, bad: []string{`["a"]`, `[1,1.0]`, `["a","b","c",1]`}},
	{name: "unique integers", schema: `{"type":"array","items":{"type":"integer","exclusiveMinimum":0,"maximum":12},"uniqueItems":true,"minItems":3,"maxItems":3}`, good: []string{`[1,12,3]`}, bad: []string{`[1,1,2]`, `[0,1,2]`, `[1,2]`}},
	{name: "unique booleans", schema: `{"type":"array","items":{"type":["boolean","null"]},"uniqueItems":true}`, good: []string{`[]`, `[true,null,false]`}, bad: []string{`[true,true]`, `[null,true,null]`}},
	{name: "unique in a tuple", schema: `{"type":"array","prefixItems":[{"enum":[1,2]},{"enum":[2,3]}],"items":{"enum":[3,4]},"uniqueItems":true}`, good: []string{`[1,2,3,4]`, `[2,3,4]`, `[1,3]`, `[2]`}, bad: []string{`[2,2]`, `[2,3,3]`, `[1,2,3,3]`, `[3]`}},
	{name: "unique by type", schema: `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"},{"type":"array"}],"items":false,"uniqueItems":true}`, good: []string{`["a",1,[]]`, `[]`}, bad: []string{`[1]`, `["a",1,[],2]`}},
	{name: "unique and alone", schema: `{"type":"array","items":{"type":"string"},"uniqueItems":true,"maxItems":1}`, good: []string{`[]`, `["a"]`}, bad: []string{`["a","b"]`}},
	{name: "unique and contained", schema: `{"type":"array","items":{"enum":["a","b","c","d"]},"uniqueItems":true,"contains":{"enum":["a","b"]},"maxContains":1}`, good: []string{`["a"]`, `["c","b","d"]`}, bad: []string{`["c"]`, `["a","b"]`, `[]`}},
	{name: "not unique is free", schema: `{"type":"array","items":{"type":"string"},"uniqueItems":false}`, good: []string{`["a","a"]`}, bad: []string{`[1]`}},

	// oneOf with branches that overlap.
	{name: "oneOf of members", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, good: []string{`{"a":1}`, `{"b":1}`, `{"a":1,"c":2}`}, bad: []string{`{}`, `{"a":1,"b":2}`, `{"c":1}`}},
	{name: "oneOf of three members", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"oneOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]}]}`, good: []string{`{"a":1}`, `{"b":1}`, `{"c":1}`}, bad: []string{`{}`, `{"a":1,"b":2}`, `{"b":1,"c":1}`, `{"a":1,"b":1,"c":1}`}},
	{name: "oneOf of numbers", schema: `{"oneOf":[{"type":"integer"},{"type":"number","minimum":3}]}`, good: []string{`1`, `3.5`, `-2`}, bad: []string{`3`, `4`, `2.5`, `3.0`}},
	{name: "oneOf of multiples", schema: `{"type":"integer","oneOf":[{"multipleOf":3},{"multipleOf":5}]}`, good: []string{`3`, `5`, `-9`, `10`}, bad: []string{`15`, `0`, `1`}},
	{name: "oneOf of lengths that meet", schema: `{"type":"string","oneOf":[{"maxLength":3},{"minLength":3}]}`, good: []string{`"ab"`, `"abcd"`}, bad: []string{`"abc"`}},
	{name: "oneOf of a type and no type", schema: `{"oneOf":[{"type":"string"},{"properties":{"a":{"type":"string"}}}]}`, good: []string{`{"a":"x"}`, `{}`}, bad: []string{`"x"`, `{"a":1}`}},

	{name: "oneOf beside members of a branch", schema: `{"type":"object","allOf":[{"oneOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]},{"properties":{"b":{"type":["integer","null"]}}}]}`, good: []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":null}`}, bad: []string{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{}`}},
	{name: "oneOf of a type, and another type", schema: `{"allOf":[{"type":"array"},{"oneOf":[{"items":{"type":"boolean"},"required":["c"]},{"properties":{"b":{"type":"null"}}}]}]}`, good: []string{`[1]`, `[true,1]`}, bad: []string{`[]`, `[true]`, `{}`}},
	{name: "oneOf of values and of none", schema: `{"oneOf":[{"enum":[true,"ab",null,3]},{"exclusiveMinimum":0}]}`, options: open, good: []string{`"a"`, `3.5`, `[]`, `{"a":1}`, `false`}, bad: []string{`null`, `true`, `"ab"`, `3`, `-1`}},
	{name: "oneOf of kinds that have another", schema: `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string","format":"date"}},"required":["kind"]},{"properties":{"kind":{"const":"b"},"y":{"type":"string","format":"email"}},"required":["kind"]}]}`, good: []string{`{"id":1,"kind":"a","x":"2024-01-02"}`, `{"id":1,"kind":"b"}`}, bad: []string{`{"id":1}`, `{"id":1,"kind":"c"}`, `{"kind":"a"}`}},

	// What is not evaluated.
	{name: "unevaluated members", schema: `{"$defs":{"base":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},"allOf":[{"$ref":"#/$defs/base"}],"properties":{"name":{"type":"string"}},"unevaluatedProperties":false}`, options: Options{Open: true, AnyOrder: true}, good: []string{`{"id":1}`, `{"id":1,"name":""}`, `{"name":"","id":1}`}, bad: []string{`{"id":1,"x":2}`, `{"name":""}`}},
	{name: "unevaluated members of branches", schema: `{"type":"object","anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}],"unevaluatedProperties":{"type":"null"}}`, options: Options{Open: true, AnyOrder: true}, good: []string{`{"a":1}`, `{"a":1,"b":2}`, `{"b":2,"a":null}`, `{"b":1,"c":null}`}, bad: []string{`{"a":1,"b":"x"}`, `{"a":1,"c":1}`, `{}`}},
	{name: "unevaluated members and a condition", schema: `{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"if":{"properties":{"k":{"const":"x"}}},"then":{"properties":{"a":{"type":"integer"}}},"else":{"properties":{"b":{"type":"integer"}}},"unevaluatedProperties":false}`, good: []string{`{"k":"x","a":1}`, `{"k":"y","b":1}`, `{"k":"x"}`}, bad: []string{`{"k":"x","b":1}`, `{"k":"y","a":1}`, `{"k":"x","c":1}`}},
	{name: "unevaluated members, not those of a negation", schema: `{"type":"object","properties":{"a":{"type":"integer"}},"not":{"not":{"properties":{"b":{"type":"integer"}},"required":["a"]}},"unevaluatedProperties":false}`, options: open, good: []string{`{"a":1}`}, bad: []string{`{"a":1,"b":1}`, `{}`}},
	{name: "unevaluated members of a pattern", schema: `{"type":"object","allOf":[{"patternProperties":{"^x":{"type":"integer"}}},{"properties":{"a":true}}],"unevaluatedProperties":{"type":"string"}}`, good: []string{`{"a":[],"x1":1,"y":"s"}`}, bad: []string{`{"x1":"s"}`, `{"y":1}`}},
	{name: "all members evaluated", schema: `{"type":"object","allOf":[{"additionalProperties":{"type":"integer"}}],"unevaluatedProperties":false}`, good: []string{`{}`, `{"a":1}`}, bad: []string{`{"a":"x"}`}},
	{name: "members of a cousin", schema: `{"allOf":[{"type":"object","properties":{"a":true}},{"unevaluatedProperties":false}]}`, options: open, good: []string{`{}`}, bad: []string{`{"a":1}`, `{"b":1}`}},
	{name: "unevaluated in values", schema: `{"enum":[{"a":1},{"a":1,"b":2},{"b":2}],"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}],"unevaluatedProperties":false}`, good: []string{`{"a":1}`, `{"a":1,"b":2}`, `{"b":2}`}, bad: []string{`{"a":2}`}},
	{name: "unevaluated items", schema: `{"type":"array","prefixItems":[{"type":"string"}],"allOf":[{"prefixItems":[true,{"type":"integer"}]}],"unevaluatedItems":{"type":"null"}}`, good: []string{`[]`, `["a",1]`, `["a",1,null,null]`}, bad: []string{`[1]`, `["a",1,2]`}},
	{name: "unevaluated items and contains", schema: `{"type":"array","contains":{"type":"string"},"minContains":0,"unevaluatedItems":{"type":"integer"}}`, good: []string{`[]`, `["a",1]`, `[1,2]`}, bad: []string{`[null]`, `["a",1.5]`}},
	{name: "all items evaluated", schema: `{"type":"array","anyOf":[{"items":{"type":"string"}},true],"unevaluatedItems":{"type":"boolean"}}`, options: open, good: []string{`["a"]`, `[true]`, `[]`}, bad: []string{`[1]`, `["a",true]`}},

	{name: "white space of ECMAScript", schema: `{"type":"string","pattern":"^\\s[\\s-][^\\S]\\S[\\S]$"}`, good: []string{`" -\nab"`, "\"\u00a0\u2028\ufeffab\""}, bad: []string{"\"   \u00a0b\"", `"abcde"`}},
}

func init() { schemaCases = append(schemaCases, conditionCases...) }
