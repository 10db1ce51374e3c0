package schema

import "strings"

// schemaCase is a schema with texts that conform, texts that do not, and texts
// that are valid but are not written (narrow): the documented differences.
type schemaCase struct {
	name    string
	schema  string
	options Options
	good    []string
	bad     []string
	narrow  []string

	skipValidator bool // it knows less of regular expressions
}

var open = Options{Open: true}

var schemaCases = []schemaCase{
	{name: "anything", schema: `true`, good: []string{`1`, `"a"`, `{"a":[1,{}]}`, `null`, `-0.5e-7`, `"\u00e9\ud83d\ude00\/"`, `[ 1, 2 ]`},
		bad: []string{``, `1 2`, `{"a"}`, `[1,]`, `01`, `"\x"`, `tru`, "\"\n\"", `1.`, `.5`, `+1`, `'a'`}},
	{name: "empty schema", schema: `{}`, good: []string{`1`, `[[[]]]`}, bad: []string{`[`}},
	{name: "nothing but a title", schema: `{"title":"T","description":"D","$comment":"c","default":1,"examples":[1],"x-order":3,"deprecated":true}`, good: []string{`{"a":1}`}},

	// Types.
	{name: "null", schema: `{"type":"null"}`, good: []string{`null`}, bad: []string{`0`, `"null"`, `nul`}},
	{name: "boolean", schema: `{"type":"boolean"}`, good: []string{`true`, `false`}, bad: []string{`1`, `"true"`}},
	{name: "integer", schema: `{"type":"integer"}`, good: []string{`0`, `-12`, `123456789012345678`, `-0`}, bad: []string{`1.5`, `"1"`}, narrow: []string{`1.0`, `1e3`, `1234567890123456789`}},
	{name: "number", schema: `{"type":"number"}`, good: []string{`0`, `-1.25`, `1e10`, `1E-07`, `0.0001`, `1e289`}, bad: []string{`"1"`, `null`}, narrow: []string{`1e300`, `0.123456789012345678`}},
	{name: "string", schema: `{"type":"string"}`, good: []string{`""`, `"a b"`, `"\"\\\n\u0041"`, `"日本"`, `"\ud83d\ude00"`}, bad: []string{`1`, "\"\t\"", `"\ud83d"`[:7], `"\q"`}},
	{name: "array", schema: `{"type":"array"}`, good: []string{`[]`, `[1,"a",[]]`}, bad: []string{`{}`, `[1`}},
	{name: "object", schema: `{"type":"object"}`, good: []string{`{}`, `{"a":{"a":1},"b":[]}`}, bad: []string{`[]`, `null`}},
	{name: "several types", schema: `{"type":["string","null","integer"]}`, good: []string{`"a"`, `null`, `7`}, bad: []string{`true`, `7.5`, `[]`}},
	{name: "keywords without effect on the type", schema: `{"type":"integer","minLength":3,"pattern":"x","items":false}`, good: []string{`1`}, bad: []string{`"xxx"`, `[]`}},

	// Values.
	{name: "enum", schema: `{"enum":["red","reddish",3,null,true,{"a":[1,{"b":null}]},[]]}`,
		good: []string{`"red"`, `"reddish"`, `3`, `null`, `true`, `{"a":[1,{"b":null}]}`, `{"a": [1, {"b": null}]}`, `[]`}, bad: []string{`"redd"`, `false`, `{"a":[1]}`, `33`}, narrow: []string{`3.0`, `"r\u0065d"`}},
	{name: "enum filtered by type", schema: `{"type":"string","enum":["a",1,null,"b"]}`, good: []string{`"a"`, `"b"`}, bad: []string{`1`, `null`}},
	{name: "enum filtered by bounds", schema: `{"enum":[1,2,3,4,"x"],"minimum":2,"maximum":3}`, good: []string{`2`, `3`, `"x"`}, bad: []string{`1`, `4`}},
	{name: "enum with awkward characters", schema: `{"enum":["a\"b","\\","\n","\u0001","é","/"]}`, good: []string{`"a\"b"`, `"\\"`, `"\n"`, `"\u0001"`, `"é"`, `"/"`}, bad: []string{`"a"`, `""`}, narrow: []string{`"\u00e9"`, `"\/"`}},
	{name: "const", schema: `{"const":{"a":1.50}}`, good: []string{`{"a":1.50}`}, bad: []string{`{"a":1.51}`, `{}`}, narrow: []string{`{"a":1.5}`}},
	{name: "const and enum", schema: `{"const":2,"enum":[1,2,3]}`, good: []string{`2`}, bad: []string{`1`, `3`}},
	{name: "long enum", schema: `{"enum":["alpha","alphabet","beta","gamma","delta","epsilon","zeta","eta","theta","iota","kappa"]}`, good: []string{`"eta"`, `"alphabet"`}, bad: []string{`"alph"`}},

	// Strings.
	{name: "length", schema: `{"type":"string","minLength":2,"maxLength":4}`, good: []string{`"ab"`, `"abcd"`, `"日本語"`, `"\ud83d\ude00\n"`, `"\u0041b"`}, bad: []string{`"a"`, `"abcde"`, `""`, `"\ud83d\ude00"`}},
	{name: "least length", schema: `{"type":"string","minLength":3}`, good: []string{`"abc"`, `"abcdefgh"`}, bad: []string{`"ab"`}},
	{name: "no length", schema: `{"type":"string","maxLength":0}`, good: []string{`""`}, bad: []string{`"a"`}},
	{name: "great length", schema: `{"type":"string","minLength":5,"maxLength":100000}`, good: []string{`"abcdefghijk"`}, bad: []string{`"abcd"`}},
	{name: "pattern", schema: `{"type":"string","pattern":"^[a-z]+-[0-9]{2}$"}`, good: []string{`"ab-12"`}, bad: []string{`"ab-1"`, `"ab-123"`, `" ab-12"`, `"-12"`}},
	{name: "pattern somewhere", schema: `{"type":"string","pattern":"b+c"}`, good: []string{`"bc"`, `"aabbbcd"`, `"\nbc\""`}, bad: []string{`"b"`, `"cb"`}, narrow: []string{`"\u0062c"`}},
	{name: "pattern with one anchor", schema: `{"type":"string","pattern":"^x"}`, good: []string{`"x"`, `"xyz"`}, bad: []string{`"yx"`, `""`}},
	{name: "pattern with alternatives", schema: `{"type":"string","pattern":"^(foo|ba[rz])?$|^q"}`, good: []string{`"foo"`, `"baz"`, `""`, `"quux"`}, bad: []string{`"ba"`, `"foobar"`}},
	{name: "pattern with escapes", schema: `{"type":"string","pattern":"^\\d\\s\\w\\.\\/\\u00e9[\\u4e00-\\u9fff]$"}`, good: []string{`"1 a./é日"`, `"1\ta./é中"`}, bad: []string{`"1 a./e日"`, `"a a./é日"`}},
	{name: "pattern with quotes", schema: `{"type":"string","pattern":"^[\"\\\\\\n]+$"}`, good: []string{`"\"\\\n"`}, bad: []string{`"a"`, `"\t"`}},
	{name: "pattern and length", schema: `{"type":"string","pattern":"^(ab)*$","minLength":3,"maxLength":7}`, good: []string{`"abab"`, `"ababab"`}, bad: []string{`"ab"`, `"ababa"`, `"abababab"`}},
	{name: "pattern and a great bound", schema: `{"type":"string","pattern":"^(ab|é)+$","maxLength":70000}`, good: []string{`"ab"`, `"éabé"`}, bad: []string{`""`, `"a"`}},
	{name: "pattern and a bound", schema: `{"type":"string","pattern":"^(ab|é|\"|[a-c]x*y)+$","maxLength":5}`, good: []string{`"ab"`, `"ééééé"`, `"\"\"\"\"\""`, `"axxxy"`, `"abaxy"`}, bad: []string{`"éééééé"`, `"ababa"`, `"ababab"`, `"axxxx"`, `"axxxxy"`}},
	{name: "format and a great bound", schema: `{"type":"array","items":{"type":"string","format":"uri","minLength":1,"maxLength":2083}}`, good: []string{`["https://u:p@example.org/a?b#c","a:b"]`}, bad: []string{`["a"]`, `["https://example.org/` + strings.Repeat("a", 2083-19) + `"]`}},
	{name: "left out texts and a bound", schema: `{"type":"string","not":{"enum":["ab","abc"]},"maxLength":3}`, good: []string{`"aba"`, `"a"`, `""`}, bad: []string{`"ab"`, `"abc"`, `"abab"`}},
	{name: "a bound by look-ahead", schema: `{"type":"string","pattern":"^(?=.{2,4}\\.?$)[a-z]+(\\.[a-z]+)*\\.?$"}`, good: []string{`"ab"`, `"a.bc"`, `"ab."`}, bad: []string{`"a"`, `"abcde"`, `"a\nb"`}, narrow: []string{`"abcd."`}},
	{name: "pattern with look-ahead", schema: `{"type":"string","pattern":"^(?!.*--)[a-z-]+$"}`, good: []string{`"a-b"`}, bad: []string{`"a--b"`, `""`}},
	{name: "emoji", schema: `{"type":"string","format":"emoji","pattern":"^(?=[\\s\\S]*[\\p{Extended_Pictographic}\\p{Regional_Indicator}\\u20E3])[\\p{Extended_Pictographic}\\p{Emoji_Component}]+$"}`, good: []string{`"😀"`, `"👍🏽"`, `"1️⃣"`}, bad: []string{`"1"`, `"a"`, `""`, `"😀a"`}, skipValidator: true},
	{name: "properties", schema: `{"type":"string","pattern":"^\\p{Lu}[\\p{Script=Greek}\\p{Letter}]*[^\\P{N}]\\P{L}$"}`, good: []string{`"Aα1."`}, bad: []string{`"aα1."`, `"Aαb."`, `"Aα1b"`}, skipValidator: true},
	{name: "set of strings", schema: `{"type":"array","items":{"type":"string"},"uniqueItems":true,"minItems":2}`, good: []string{`["a","b"]`, `["","a","ab","abc"]`, `["a\n", "a\u0001", "日"]`}, bad: []string{`["a"]`, `[]`, `["a","a"]`, `["a","b","a"]`, `["ab", "a", "ab"]`, `["",""]`}, narrow: []string{`["\u0061","b"]`}},
	{name: "set of numbers", schema: `{"type":"array","items":{"type":["number","null"]},"uniqueItems":true,"maxItems":4}`, good: []string{`[1,1.5,12,null]`, `[0,-1,0.5]`, `[10,1]`}, bad: []string{`[1,1]`, `[1,1.0]`, `[null,null]`, `[12,1,12]`, `[1,2,3,4,5]`}, narrow: []string{`[1.50]`, `[1e3]`, `[-0]`}},
	{name: "set of a few hundred", schema: `{"type":"array","items":{"type":"integer","minimum":1,"maximum":200},"uniqueItems":true}`, good: []string{`[]`, `[200,20,2]`, `[1,10,100]`}, bad: []string{`[20,20]`, `[201]`, `[2,20,200,2]`}},
	{name: "set of anything", schema: `{"type":"array","uniqueItems":true}`, good: []string{`[]`, `[1,"1",true,null]`}, bad: []string{`[1,1]`, `[true,true]`}, narrow: []string{`[[1],{}]`}},
	{name: "set of a pattern", schema: `{"type":"array","items":{"type":"string","pattern":"^a{1,20}$","maxLength":15},"uniqueItems":true,"minItems":3}`, good: []string{`["a","aa","aaa"]`}, bad: []string{`["a","aa","aa"]`, `["a","aa"]`, `["a","aa","aaaaaaaaaaaaaaaa"]`}},
	{name: "unknown keywords and formats", schema: `{"type":"string","nullable":true,"foo":[1],"x-y":{},"format":"color","propertyOrdering":["a"]}`, good: []string{`"x"`}, bad: []string{`null`}},
	{name: "unknown format with a pattern", schema: `{"type":"string","format":"starts_with","pattern":"^aaa.*"}`, good: []string{`"aaab"`}, bad: []string{`"aab"`}},
	{name: "two patterns", schema: `{"type":"string","allOf":[{"pattern":"a"},{"pattern":"^.{2}$"}]}`, good: []string{`"ab"`, `"ba"`}, bad: []string{`"a"`, `"bb"`, `"aab"`}},
	{name: "words", schema: `{"type":"string","pattern":"^\\bfoo\\b.\\bbar$"}`, good: []string{`"foo bar"`, `"foo-bar"`}, bad: []string{`"fooxbar"`, `"foo_bar"`}},
	{name: "date", schema: `{"type":"string","format":"date"}`, good: []string{`"2024-02-29"`, `"2000-02-29"`, `"1999-12-31"`}, bad: []string{`"2023-02-29"`, `"1900-02-29"`, `"2024-04-31"`, `"2024-13-01"`, `"24-01-01"`}},
	{name: "time", schema: `{"type":"string","format":"time"}`, good: []string{`"12:00:00Z"`, `"23:59:59.123+02:00"`}, bad: []string{`"24:00:00Z"`, `"12:00"`, `"12:00:00"`}},
	{name: "date-time", schema: `{"type":"string","format":"date-time"}`, good: []string{`"2024-02-29T12:00:00Z"`}, bad: []string{`"2024-02-30T12:00:00Z"`, `"2024-02-29"`}},
	{name: "duration", schema: `{"type":"string","format":"duration"}`, good: []string{`"P1Y2M3DT4H5M6S"`, `"PT5M"`, `"P3W"`}, bad: []string{`"P"`, `"PT"`, `"1D"`}, narrow: []string{`"P1Y2D"`}},
	{name: "email", schema: `{"type":"string","format":"email"}`, good: []string{`"a.b+c@example.org"`}, bad: []string{`"a"`, `"a@"`}, narrow: []string{`"\"a b\"@c.d"`}},
	{name: "hostname", schema: `{"type":"string","format":"hostname"}`, good: []string{`"www.example.org"`, `"localhost"`, `"a-1.b"`}, bad: []string{`"-a"`, `"a..b"`, `"a_b"`}},
	{name: "ipv4", schema: `{"type":"string","format":"ipv4"}`, good: []string{`"127.0.0.1"`, `"255.255.255.255"`}, bad: []string{`"256.0.0.1"`, `"1.2.3"`, `"01.2.3.4"`}},
	{name: "ipv6", schema: `{"type":"string","format":"ipv6"}`, good: []string{`"::"`, `"::1"`, `"2001:db8::8a2e:370:7334"`, `"1:2:3:4:5:6:7:8"`, `"1::"`}, bad: []string{`"1:2:3"`, `"1::2::3"`, `"12345::"`, `":::"`}},
	{name: "uuid", schema: `{"type":"string","format":"uuid"}`, good: []string{`"123e4567-e89b-12d3-a456-426614174000"`}, bad: []string{`"123e4567"`}},
	{name: "uri", schema: `{"type":"string","format":"uri"}`, good: []string{`"https://example.org:8080/a/b?x=1#y"`, `"urn:isbn:123"`, `"mailto:a@b.c"`}, bad: []string{`"/a/b"`, `"a b"`, `"http://a b"`}},
	{name: "uri-reference", schema: `{"type":"string","format":"uri-reference"}`, good: []string{`"/a/b?c"`, `"https://a.b/"`}, bad: []string{`"\\\\a"`}},
	{name: "json-pointer", schema: `{"type":"string","format":"json-pointer"}`, good: []string{`""`, `"/a~1b/0"`}, bad: []string{`"a"`, `"/a~"`}},
	{name: "relative-json-pointer", schema: `{"type":"string","format":"relative-json-pointer"}`, good: []string{`"0"`, `"1/a"`, `"2#"`}, bad: []string{`"/a"`, `"01"`}},
	{name: "format and length", schema: `{"type":"string","format":"ipv4","maxLength":9}`, good: []string{`"127.0.0.1"`}, bad: []string{`"127.0.0.12"`}},
	{name: "formats without effect", schema: `{"type":["string","number"],"format":"password"}`, good: []string{`"x"`, `1.5`}},

	// Numbers.
	{name: "minimum", schema: `{"type":"integer","minimum":-3}`, good: []string{`-3`, `0`, `999999`}, bad: []string{`-4`, `-10`, `-99`}},
	{name: "maximum", schema: `{"type":"integer","maximum":105}`, good: []string{`105`, `99`, `-100000`, `0`}, bad: []string{`106`, `110`, `1000`}},
	{name: "range", schema: `{"type":"integer","minimum":7,"maximum":131}`, good: []string{`7`, `10`, `99`, `100`, `131`}, bad: []string{`6`, `132`, `0`, `-7`, `1000`, `13.5`}},
	{name: "exclusive range", schema: `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}`, good: []string{`1`, `9`}, bad: []string{`0`, `10`, `-1`, `-0`}},
	{name: "negative range", schema: `{"type":"integer","minimum":-250,"maximum":-19}`, good: []string{`-19`, `-250`, `-100`}, bad: []string{`-18`, `-251`, `0`, `19`}},
	{name: "range of fractions", schema: `{"type":"number","minimum":-1.5,"exclusiveMaximum":2.25}`, good: []string{`-1.5`, `-1.49`, `0`, `2.2499`, `2.2`, `-0.0`, `1.5000`, `-1.500`}, bad: []string{`-1.51`, `2.25`, `2.250`, `3`, `-2`}, narrow: []string{`1e0`}},
	{name: "between zero and one", schema: `{"type":"number","exclusiveMinimum":0,"maximum":1}`, good: []string{`0.001`, `1`, `1.0`, `0.5`}, bad: []string{`0`, `0.0`, `-0.5`, `1.001`, `2`}},
	{name: "fractional bounds of integers", schema: `{"type":"integer","minimum":0.5,"maximum":3.7}`, good: []string{`1`, `3`}, bad: []string{`0`, `4`}},
	{name: "great bounds", schema: `{"type":"number","minimum":-1.7976931348623157e308,"maximum":1.7976931348623157e308}`, good: []string{`1e200`, `-5`}},
	{name: "many digits", schema: `{"type":"integer","minimum":100000000000000000000,"maximum":100000000000000000009}`, good: []string{`100000000000000000005`}, bad: []string{`100000000000000000010`, `1`}},
	{name: "multiple of five", schema: `{"type":"integer","multipleOf":5}`, good: []string{`0`, `5`, `-10`, `125`}, bad: []string{`1`, `12`}},
	{name: "multiple of seven in a range", schema: `{"type":"integer","multipleOf":7,"minimum":10,"maximum":30}`, good: []string{`14`, `28`}, bad: []string{`7`, `35`, `15`}},
	{name: "multiple of a cent", schema: `{"type":"number","multipleOf":0.01,"minimum":0}`, good: []string{`1`, `1.5`, `0.25`}, bad: []string{`0.001`, `-1`, `1.234`}, narrow: []string{`1.500`}},
	{name: "multiple of a quarter", schema: `{"type":"number","multipleOf":0.25}`, good: []string{`1`, `1.5`, `0.75`, `-2.25`}, bad: []string{`0.1`, `1.3`}},
	{name: "two multiples", schema: `{"type":"integer","allOf":[{"multipleOf":4},{"multipleOf":6}]}`, good: []string{`12`, `24`, `0`}, bad: []string{`4`, `6`, `8`}},
	{name: "int32", schema: `{"type":"integer","format":"int32"}`, good: []string{`2147483647`, `-2147483648`}, bad: nil},
	{name: "numbers without a type", schema: `{"minimum":3}`, good: []string{`3`, `3.5`}, bad: []string{`2`}, narrow: []string{`"a"`, `null`}},
	{name: "numbers without a type, open", schema: `{"minimum":3}`, options: open, good: []string{`3`, `"a"`, `null`, `[1]`}, bad: []string{`2`}},

	// Arrays.
	{name: "items", schema: `{"type":"array","items":{"type":"integer"}}`, good: []string{`[]`, `[1]`, `[1,2,3]`, "[\n  1,\n  2\n]"}, bad: []string{`["a"]`, `[1,null]`}},
	{name: "no items", schema: `{"type":"array","items":false}`, good: []string{`[]`}, bad: []string{`[1]`}},
	{name: "number of items", schema: `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":4}`, good: []string{`[true,false]`, `[true,true,true,true]`}, bad: []string{`[true]`, `[]`, `[true,true,true,true,true]`}},
	{name: "least number of items", schema: `{"type":"array","items":{"const":1},"minItems":3}`, good: []string{`[1,1,1]`, `[1,1,1,1,1]`}, bad: []string{`[1,1]`}},
	{name: "exactly one item", schema: `{"type":"array","minItems":1,"maxItems":1}`, good: []string{`["x"]`}, bad: []string{`[]`, `[1,2]`}},
	{name: "no room", schema: `{"type":"array","maxItems":0}`, good: []string{`[]`}, bad: []string{`[1]`}},
	{name: "one or more", schema: `{"type":"array","items":{"type":"null"},"minItems":1}`, good: []string{`[null]`, `[null,null]`}, bad: []string{`[]`}},
	{name: "many items", schema: `{"type":"array","items":{"type":"integer"},"minItems":100,"maxItems":5000}`, bad: []string{`[1,2]`}},
	{name: "tuple", schema: `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"}}`, good: []string{`[]`, `[1]`, `[1,"a"]`, `[1,"a",true,false]`}, bad: []string{`["a"]`, `[1,2]`, `[1,"a","b"]`}},
	{name: "closed tuple", schema: `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2}`, good: []string{`[1,"a"]`}, bad: []string{`[1]`, `[1,"a",2]`}},
	{name: "open tuple", schema: `{"type":"array","prefixItems":[{"type":"integer"}],"minItems":1}`, good: []string{`[1]`, `[1,"a",{}]`}, bad: []string{`["a"]`, `[]`}},
	{name: "tuple and number", schema: `{"type":"array","prefixItems":[{"const":0},{"const":1}],"items":{"const":2},"minItems":3,"maxItems":5}`, good: []string{`[0,1,2]`, `[0,1,2,2,2]`}, bad: []string{`[0,1]`, `[0,1,2,2,2,2]`, `[0,1,1]`}},
	{name: "tuple cut short", schema: `{"type":"array","prefixItems":[{"const":0},{"const":1},false]}`, good: []string{`[]`, `[0]`, `[0,1]`}, bad: []string{`[0,1,2]`}},
	{name: "long tuple with a bound", schema: `{"type":"array","prefixItems":[{"const":0},{"const":1},{"const":2}],"maxItems":2}`, good: []string{`[0,1]`}, bad: []string{`[0,1,2]`}},
	{name: "lists of lists", schema: `{"type":"array","items":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2},"minItems":1}`, good: []string{`[[1,2],[3,4.5]]`}, bad: []string{`[[1]]`, `[]`}},

	// Objects.
	{name: "properties", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}`, good: []string{`{}`, `{"a":1}`, `{"b":"x"}`, `{"a":1,"b":"x"}`, `{"a": 1, "b": "x"}`}, bad: []string{`{"a":"x"}`, `{"b":1}`}, narrow: []string{`{"b":"x","a":1}`, `{"c":1}`}},
	{name: "properties, open", schema: `{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"null"}}}`, options: open, good: []string{`{"c":[]}`, `{"a":1,"b":2}`, `{"":1,"aa":2,"abc":3}`, `{"é\n":1}`}, bad: []string{`{"a":"x"}`, `{"a":1,"ab":1}`, `{"c":1,"a":"x"}`}, narrow: []string{`{"c":1,"a":2}`}},
	{name: "required", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},"required":["b"]}`, good: []string{`{"b":"x"}`, `{"a":1,"b":"x"}`, `{"b":"","c":null}`}, bad: []string{`{}`, `{"a":1}`, `{"c":null}`}},
	{name: "all required", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`, good: []string{`{"a":1,"b":2}`}, bad: []string{`{"a":1}`, `{"b":2}`, `{"a":1,"b":2,"c":3}`}},
	{name: "required and not described", schema: `{"type":"object","required":["x","y"]}`, good: []string{`{"x":1,"y":[]}`, `{"x":1,"y":2,"z":3}`}, bad: []string{`{"x":1}`}, narrow: []string{`{"y":1,"x":2}`}},
	{name: "described and another required", schema: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["z"]}`, good: []string{`{"z":1}`, `{"a":1,"z":{}}`}, bad: []string{`{"a":1}`}},
	{name: "closed", schema: `{"type":"object","properties":{"a":true},"additionalProperties":false}`, good: []string{`{}`, `{"a":[1]}`}, bad: []string{`{"b":1}`, `{"a":1,"b":1}`}},
	{name: "additional", schema: `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`, good: []string{`{"a":1,"b":true}`, `{"x":false,"y":true}`}, bad: []string{`{"a":true}`, `{"b":1}`}},
	{name: "map", schema: `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`, good: []string{`{}`, `{"k":["a"],"\u006b2":[]}`}, bad: []string{`{"k":"a"}`}},
	{name: "awkward names", schema: `{"type":"object","properties":{"a\"b":{"const":1},"\\":{"const":2},"é":{"const":3},"":{"const":4}},"additionalProperties":{"const":0}}`, good: []string{`{"a\"b":1,"\\":2,"é":3,"":4,"a":0}`}, bad: []string{`{"a\"b":0}`, `{"":0}`, `{"\u00e9":0}`}, narrow: []string{`{"\u00e9":3}`}},
	{name: "patterns of names", schema: `{"type":"object","patternProperties":{"^x_":{"type":"integer"},"_n$":{"type":"number","minimum":10}}}`, good: []string{`{"x_a":1}`, `{"a_n":10.5}`, `{"x_n":12}`}, bad: []string{`{"x_a":"s"}`, `{"x_n":1}`, `{"a_n":1}`}, narrow: []string{`{"y":1}`}},
	{name: "patterns of names and nothing else", schema: `{"type":"object","properties":{"n":{"type":"null"}},"patternProperties":{"^s":{"type":"string"}},"additionalProperties":false}`, good: []string{`{"n":null,"s1":"a"}`, `{"s":""}`}, bad: []string{`{"t":1}`, `{"s":1}`}},
	{name: "pattern that covers a property", schema: `{"type":"object","properties":{"ab":{"minimum":5}},"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, good: []string{`{"ab":5,"ac":1,"b":"s"}`}, bad: []string{`{"ab":4}`, `{"ab":5.5}`, `{"ac":"s"}`, `{"b":1}`}},
	{name: "names", schema: `{"type":"object","propertyNames":{"pattern":"^[a-c]+$","maxLength":2},"additionalProperties":{"type":"integer"}}`, good: []string{`{"a":1,"bc":2}`}, bad: []string{`{"d":1}`, `{"abc":1}`, `{"":1}`}},
	{name: "names from a list", schema: `{"type":"object","propertyNames":{"enum":["x","y"]}}`, good: []string{`{"x":1,"y":2}`, `{}`}, bad: []string{`{"z":1}`}},
	{name: "names that exclude a property", schema: `{"type":"object","properties":{"abc":{"type":"integer"},"d":{"type":"integer"}},"propertyNames":{"maxLength":2}}`, good: []string{`{"d":1}`, `{}`}, bad: []string{`{"abc":1}`}},
	{name: "few members", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"minProperties":1,"maxProperties":2}`, good: []string{`{"a":1}`, `{"b":1,"c":1}`}, bad: []string{`{}`, `{"a":1,"b":1,"c":1}`}},
	{name: "some members of a map", schema: `{"type":"object","additionalProperties":{"type":"null"},"minProperties":1,"maxProperties":3}`, good: []string{`{"a":null}`, `{"a":null,"b":null,"c":null}`}, bad: []string{`{}`, `{"a":null,"b":null,"c":null,"d":null}`}},
	{name: "no members", schema: `{"type":"object","maxProperties":0}`, good: []string{`{}`}, bad: []string{`{"a":1}`}},
	{name: "any order", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},"required":["a","c"]}`, options: Options{AnyOrder: true}, good: []string{`{"a":1,"c":null}`, `{"c":null,"b":"","a":1}`, `{"b":"","a":1,"c":null}`}, bad: []string{`{}`, `{"a":1}`, `{"a":1,"b":"x"}`}},
	{name: "any order, open", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"]}`, options: Options{AnyOrder: true, Open: true}, good: []string{`{"x":1,"b":"","y":2,"a":1}`, `{"b":""}`}, bad: []string{`{"x":1}`, `{"b":1}`, `{"x":1,"b":"","a":""}`}},
	{name: "nested", schema: `{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}},"required":["l"]}},"required":["o"]}`, good: []string{`{"o":{"l":[{"x":1},{"x":2.5}]}}`, "{\n  \"o\": {\n    \"l\": []\n  }\n}"}, bad: []string{`{"o":{"l":[{}]}}`, `{"o":{}}`}},
	{name: "objects without a type", schema: `{"properties":{"a":{"type":"integer"}},"required":["a"]}`, good: []string{`{"a":1}`}, bad: []string{`{}`}, narrow: []string{`3`}},
	{name: "objects without a type, open", schema: `{"properties":{"a":{"type":"integer"}},"required":["a"]}`, options: open, good: []string{`{"a":1}`, `3`, `"x"`}, bad: []string{`{}`}},

	// References.
	{name: "definition", schema: `{"$defs":{"n":{"type":"integer"}},"type":"array","items":{"$ref":"#/$defs/n"}}`, good: []string{`[1,2]`}, bad: []string{`["a"]`}},
	{name: "old definition", schema: `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}}}`, good: []string{`{"a":1}`}, bad: []string{`{"a":"x"}`}},
	{name: "reference with company", schema: `{"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n","minimum":3}`, good: []string{`3`}, bad: []string{`2`, `"a"`}},
	{name: "reference to a property", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}},"required":["b"]}`, good: []string{`{"b":1}`}, bad: []string{`{"b":"x"}`}},
	{name: "escaped reference", schema: `{"$defs":{"a/b":{"type":"null"},"c~d%":{"type":"boolean"}},"prefixItems":[{"$ref":"#/$defs/a~1b"},{"$ref":"#/$defs/c~0d%25"}],"minItems":2,"maxItems":2}`, good: []string{`[null,true]`}, bad: []string{`[true,null]`}},
	{name: "chain of references", schema: `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c"},"c":{"type":"string"}},"$ref":"#/$defs/a"}`, good: []string{`"x"`}, bad: []string{`1`}},
	{name: "list", schema: `{"$defs":{"l":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/l"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/l"}`, good: []string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":null}}`}, bad: []string{`{"v":1}`, `{"v":1,"next":{"v":2}}`}},
	{name: "tree", schema: `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`, good: []string{`{"name":"a"}`, `{"name":"a","children":[{"name":"b","children":[]},{"name":"c"}]}`}, bad: []string{`{"name":"a","children":[{}]}`}},
	{name: "two that refer to each other", schema: `{"$defs":{"even":{"type":"array","items":{"$ref":"#/$defs/odd"},"maxItems":2},"odd":{"type":"object","additionalProperties":{"$ref":"#/$defs/even"}}},"$ref":"#/$defs/even"}`, good: []string{`[]`, `[{"a":[]},{}]`, `[{"a":[{"b":[]}]}]`}, bad: []string{`[[]]`, `[{"a":{}}]`}},
	{name: "expression", schema: `{"$defs":{"e":{"anyOf":[{"type":"number"},{"type":"object","properties":{"op":{"enum":["+","*"]},"args":{"type":"array","items":{"$ref":"#/$defs/e"},"minItems":2,"maxItems":2}},"required":["op","args"],"additionalProperties":false}]}},"$ref":"#/$defs/e"}`, good: []string{`1`, `{"op":"+","args":[1,{"op":"*","args":[2,3]}]}`}, bad: []string{`{"op":"-","args":[1,2]}`, `{"op":"+","args":[1]}`}},
	{name: "identified root", schema: `{"$id":"https://example.org/s.json","$defs":{"a":{"type":"integer"}},"items":{"$ref":"https://example.org/s.json#/$defs/a"}}`, good: []string{`[1]`}, bad: []string{`["a"]`}},

	// Combinations.
	{name: "anyOf", schema: `{"anyOf":[{"type":"integer","minimum":5},{"type":"string","maxLength":2},{"type":"null"}]}`, good: []string{`5`, `"ab"`, `null`}, bad: []string{`4`, `"abc"`, `true`}},
	{name: "anyOf that overlaps", schema: `{"type":"string","anyOf":[{"pattern":"^a"},{"minLength":3}]}`, good: []string{`"a"`, `"bcd"`, `"abcd"`}, bad: []string{`"b"`, `"bc"`}},
	{name: "anyOf of objects", schema: `{"type":"object","anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`, good: []string{`{"a":1}`, `{"b":1}`}, bad: []string{`{}`}, narrow: []string{`{"a":1,"b":1}`}},
	{name: "anyOf beside properties", schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, good: []string{`{"a":1}`, `{"b":1,"c":2}`, `{"a":1,"b":2}`}, bad: []string{`{"c":1}`, `{}`}},
	{name: "optional", schema: `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}},"required":["a"]}`, good: []string{`{"a":null}`, `{"a":"x"}`}, bad: []string{`{"a":1}`}},
	{name: "oneOf of types", schema: `{"oneOf":[{"type":"integer"},{"type":"string"},{"type":"array","items":{"type":"integer"}}]}`, good: []string{`1`, `"a"`, `[1]`}, bad: []string{`null`, `["a"]`}},
	{name: "oneOf of constants", schema: `{"oneOf":[{"const":"a"},{"const":"b"},{"enum":[1,2]}]}`, good: []string{`"a"`, `"b"`, `2`}, bad: []string{`"c"`, `3`}},
	{name: "oneOf of kinds", schema: `{"oneOf":[{"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}},"required":["kind","lives"]},{"type":"object","properties":{"kind":{"const":"dog"},"name":{"type":"string"}},"required":["kind"]}]}`, good: []string{`{"kind":"cat","lives":9}`, `{"kind":"dog","name":"x"}`, `{"kind":"dog"}`}, bad: []string{`{"kind":"cat"}`, `{"kind":"cow"}`}},
	{name: "oneOf by reference with a discriminator", schema: `{"$defs":{"A":{"type":"object","properties":{"t":{"const":"a","type":"string"},"x":{"type":"integer"}},"required":["t","x"]},"B":{"type":"object","properties":{"t":{"const":"b","type":"string"},"y":{"type":"array","items":{"$ref":"#"}}},"required":["t"]}},"discriminator":{"propertyName":"t"},"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}`, good: []string{`{"t":"a","x":1}`, `{"t":"b","y":[{"t":"b"},{"t":"a","x":2}]}`}, bad: []string{`{"t":"a"}`, `{"t":"b","y":[1]}`}},
	{name: "oneOf of different members", schema: `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`, good: []string{`{"a":1}`, `{"b":1}`}, bad: []string{`{}`, `{"a":1,"b":1}`}},
	{name: "oneOf of ranges", schema: `{"type":"number","oneOf":[{"maximum":3},{"exclusiveMinimum":3,"maximum":5},{"minimum":7}]}`, good: []string{`3`, `3.5`, `7`}, bad: []string{`6`, `5.5`}},
	{name: "oneOf of lengths", schema: `{"oneOf":[{"type":"string","maxLength":2},{"type":"string","minLength":4,"maxLength":5}]}`, good: []string{`"ab"`, `"abcd"`}, bad: []string{`"abc"`, `"abcdef"`}},
	{name: "oneOf of patterns", schema: `{"type":"string","oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}`, good: []string{`"ax"`, `"b"`}, bad: []string{`"c"`, `""`}},
	{name: "oneOf of tuples", schema: `{"type":"array","oneOf":[{"prefixItems":[{"const":1}],"minItems":1},{"prefixItems":[{"const":2}],"minItems":1},{"maxItems":0}]}`, good: []string{`[1]`, `[2,3]`, `[]`}, bad: []string{`[3]`}},
	{name: "allOf", schema: `{"allOf":[{"type":"integer"},{"minimum":3},{"maximum":5}]}`, good: []string{`3`, `5`}, bad: []string{`2`, `6`, `"a"`}},
	{name: "allOf of objects", schema: `{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, good: []string{`{"a":1,"b":"x"}`}, bad: []string{`{"a":1}`, `{"b":"x"}`}},
	{name: "allOf about one member", schema: `{"type":"object","allOf":[{"properties":{"a":{"type":"integer","minimum":2}}},{"properties":{"a":{"maximum":4}}}],"required":["a"]}`, good: []string{`{"a":2}`, `{"a":4}`}, bad: []string{`{"a":1}`, `{"a":5}`}},
	{name: "allOf that closes", schema: `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"a":{"minimum":1},"b":{"type":"integer"}}}]}`, good: []string{`{}`, `{"a":1}`}, bad: []string{`{"b":1}`, `{"a":0}`}},
	{name: "allOf with references", schema: `{"$defs":{"base":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},"allOf":[{"$ref":"#/$defs/base"},{"properties":{"x":{"$ref":"#/$defs/base"}}}]}`, good: []string{`{"id":1}`, `{"id":1,"x":{"id":2}}`}, bad: []string{`{"x":{"id":2}}`, `{"id":1,"x":{}}`}},
	{name: "allOf and anyOf", schema: `{"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"anyOf":[{"type":"string"},{"type":"null"}]}]}`, good: []string{`"a"`}, bad: []string{`1`, `null`}},
	{name: "items of both", schema: `{"allOf":[{"type":"array","items":{"type":"integer"}},{"items":{"minimum":3}}]}`, good: []string{`[3,4]`, `[]`}, bad: []string{`[1]`, `["a"]`}},
	{name: "impossible branch", schema: `{"anyOf":[false,{"type":"string","minLength":3,"maxLength":2},{"type":"integer","minimum":3,"maximum":2},{"const":7}]}`, good: []string{`7`}, bad: []string{`1`, `""`}},
	{name: "impossible member", schema: `{"type":"object","properties":{"a":false,"b":{"type":"integer"}}}`, good: []string{`{}`, `{"b":1}`}, bad: []string{`{"a":1}`}},

	// White space.
	{name: "compact", schema: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, options: Options{Whitespace: Compact}, good: []string{`{"a":[1,2]}`}, narrow: []string{`{"a": [1,2]}`, `{"a":[1, 2]}`}},
	{name: "spaced", schema: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, options: Options{Whitespace: Spaced}, good: []string{`{"a": [1, 2]}`}, narrow: []string{`{"a":[1,2]}`, `{ "a": [1, 2] }`}},
	{name: "pretty", schema: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, options: Options{Whitespace: Pretty}, good: []string{"{\n  \"a\": [\n    1,\n    2\n  ]\n}", "{\n\t\"a\": []\n}"}, narrow: []string{`{"a": [1, 2]}`, "{\n  \"a\":[]\n}"}},
	{name: "bounded", schema: `{"type":"array"}`, good: []string{"[\n\t1,\n\t2\n]", "[ 1, 2 ]"}, narrow: []string{"[1,\n\n2]", "[1 ,2]", "[  1]", " []", "[]\n"}},
}
