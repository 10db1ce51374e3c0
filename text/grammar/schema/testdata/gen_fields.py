"""Writes fields.jsonl: the JSON schemas of the field types of pydantic 2, and of zod
as gen_fields.mjs has them, each with texts that are valid and texts that are not,
as jsonschema 4.26 with its format checks says (and ajv for those of zod: a text on
which they differ is left out).

pip install 'pydantic[email]' pydantic-extra-types 'jsonschema[format]' pycountry phonenumbers semver
python gen_fields.py pool; node gen_fields.mjs; python gen_fields.py
"""
import json, sys, typing as T, enum, datetime as dt, decimal, uuid, ipaddress, pathlib, re, collections, fractions, dataclasses, importlib
from typing_extensions import TypedDict, NotRequired, Annotated, Literal
import jsonschema
import pydantic as p
import pydantic.networks as net
from pydantic import TypeAdapter, BaseModel, Field

u = 'c232ab00-9414-41ec-b3c8-9f6bdeced846'
POOL = ['null', 'true', 'false', '0', '1', '2', '3', '5', '7', '-1', '-3', '8', '10', '42', '100', '101', '1.5', '2.5', '-0.5', '0.01', '0.015', '4294967296', '-2147483649',
        '9007199254740992', '""', '"a"', '"b"', '"ab"', '"abc"', '"abcde"', '"abcdef"', '"red"', '"x"', '"ABC"', '"tuna"', '"hello, you!"', '"hello"', '"12px"', '"px"', '"-3.5em"', '"aaab"', '"bzzz"', '"x---y"', '"12.5"',
        '"user@example.org"', '"a.b+c@example.co.uk"', '"user@"', '"' + 'a' * 40 + '@example.org"', '"' + 'a' * 250 + '@b.org"', '"auser@example.orgtrue"',
        '"%s"' % u, '"00000000-0000-0000-0000-000000000000"', '"c232ab00-9414-61ec-b3c8-9f6bdeced846"', '"c232ab00-9414-71ec-b3c8-9f6bdeced846"', '"c232ab00-9414-31ec-b3c8-9f6bdeced846"', '"c232ab00"',
        '"https://example.org/a?b=c#d"', '"http://user:pw@host:80/x"', '"not a url"', '"ftp://h/"', '"' + 'https://example.org/' + 'a' * 2070 + '"', '"postgres://u:p@localhost:5432/db"', '"mailto:a@b.c"',
        '"2024-02-29"', '"2023-02-29"', '"12:30"', '"12:30:00"', '"12:30:00.123"', '"12:30:00Z"', '"25:00:00Z"', '"2024-02-29T12:30:00Z"', '"2024-02-29T12:30:00+02:00"', '"2024-02-29T12:30:00"', '"2024-02-29T12:30Z"', '"2024-02-29T12:30:00.5Z"',
        '"P1DT12H"', '"P3W"', '"PT5M"', '"P"', '"PT"', '"P1Y"', '"P1W2D"', '"127.0.0.1"', '"256.0.0.1"', '"10.0.0.0/8"', '"127.0.0.1/32"', '"::1"', '"2001:db8::1"', '"2001:db8::/32"', '"::1/128"', '":::"',
        '"😀"', '"👍🏽"', '"😀a"', '"1"', '"aGVsbG8="', '"aGVsbG8h"', '"aGVsbG8"', '"a-_b"', '"%%"', '"deadBEEF"', '"' + '0' * 64 + '"', '"' + 'A' * 27 + '="', '"V1StGXR8_Z5jdHi6B-myT"', '"cjld2cjxh0000qzrmn831i7rn"', '"cjld"', '"tz4a98xxat96iws9zmbrgj3a"',
        '"01ARZ3NDEKTSV4RRFFQ69G5FAV"', '"9m4e2mr0ui3e8a215n4g"', '"0ujtsYcgvSTl8PAuAdqWYSMnLOv"', '"00:1A:2b:3C:4d:5E"', '"00:1A:2B:3C:4D:5E"', '"example.org"', '"-bad-.org"', '"a..b"', '"+15551234567"', '"555"', '"eyJhbGciOiJIUzI1NiJ9.e30.abc"', '"123-ABC"', '"^a+$"', '"(a"', '"1.2.3-rc.1"', '"s3://b/k"', '"+-."', '"47.5"', '"1KB"', '"DE"', '"DEU"', '"276"',
        '[]', '[1]', '[1, 2]', '[1, 1]', '[1, 2, 3, 4]', '["a"]', '["a", "b"]', '["a", "a"]', '["a", "ab", "abc"]', '["red", "green"]', '["red", "red"]', '[1.5, 2.5]', '[1.5, 1.5]', '[true, false]', '[true, true]', '[null, "a"]', '[null, null]', '[1, "a"]', '["a", 1]', '["a", 1, 2]', '["a", 1, "b"]',
        '[[1, "a"], [2, "b"]]', '[[1, "a"], [1, "a"]]', '[["a", 1]]', '["2024-02-29", "2024-03-01"]', '["2024-02-29", "2024-02-29"]', '["%s"]' % u, '["https://a.b/", "https://a.c/"]', '["https://a.b/", "https://a.b/"]', '["a", "b", 3]',
        '{}', '{"a": 1}', '{"a": "x"}', '{"a": "x", "b": 1}', '{"a": 1, "b": "x"}', '{"a": 1, "b": null}', '{"a": 1, "b": 2}', '{"b": "x"}', '{"a": "x", "c": 1}', '{"red": 1}', '{"x": 1}', '{"x": 1, "y": null}', '{"x": 1, "y": 1.5}', '{"x": "1"}', '{"1": "a"}', '{"k": "a", "x": 1}', '{"k": "b", "y": "z"}', '{"k": "a"}', '{"k": "b", "x": 1}',
        '{"v": 1, "kids": []}', '{"v": 1, "kids": [{"v": 2, "kids": []}]}', '{"v": 1, "k": []}', '{"v": 1}', '{"kind": "cat", "lives": 9}', '{"kind": "dog", "bark": "w"}', '{"kind": "cat", "bark": "w"}', '{"camelCase": 1}', '{"snake": 1}', '{"a": 5, "s": "abc", "d": 1.5, "m": 3}', '{"a": 5, "s": "ABC", "d": 1.5, "m": 3}', '{"a": 5, "s": "abc", "d": 1.5, "m": 4}', '{"data": 1, "many": [2]}', '{"data": "1", "many": []}', '{"2024-02-29": 1}', '{"%s": 1}' % u, '{"user@example.org": 1}', '{"my_id": 1}', '{"my_id": "x"}', '{"latitude": 1.5, "longitude": 2.5}', '[1.5, 2]', '"1.5, 2"',
        '"c232ab00-9414-11ec-b3c8-9f6bdeced846"', '"c232ab00-9414-51ec-b3c8-9f6bdeced846"', '"mongodb://h:1/db"', '"nats://h:4222"']

if sys.argv[1:] == ['pool']:
    json.dump(POOL, open('pool.json', 'w'))
    sys.exit()

class Color(str, enum.Enum): red='red'; green='green'
class Num(enum.IntEnum): a=1; b=2
class Mixed(enum.Enum): a=1; b='x'
class TD(TypedDict): a:int; b:NotRequired[str]
class NT(T.NamedTuple): a:int; b:str='x'
@dataclasses.dataclass
class DC: a:int; b:T.Optional[str]=None
class Sub(BaseModel): x:int; y:T.Optional[float]=None
class Rec(BaseModel): v:int; kids:list['Rec']=[]
class Cat(BaseModel): kind:Literal['cat']; lives:int
class Dog(BaseModel): kind:Literal['dog']; bark:str
class Ext(BaseModel):
    model_config=p.ConfigDict(extra='forbid'); a:int
class Allow(BaseModel):
    model_config=p.ConfigDict(extra='allow'); a:int
class Alias(BaseModel): snake:int=Field(alias='camelCase', description='d', title='t', examples=[1,2], deprecated=True)
class Big(BaseModel): a:int=Field(gt=0,le=100); s:str=Field(min_length=1,max_length=20,pattern='^[a-z]+$'); d:decimal.Decimal=Field(max_digits=5,decimal_places=2); m:int=Field(multiple_of=3)
TV=T.TypeVar('TV')
class Gen(BaseModel,T.Generic[TV]): data:TV; many:list[TV]
class Roots(p.RootModel[list[int]]): pass
std=dict(bool=bool,int=int,float=float,str=str,bytes=bytes,none=None,any=T.Any,object=object,
 enum_str=Color,enum_int=Num,enum_mixed=Mixed,datetime=dt.datetime,date=dt.date,time=dt.time,timedelta=dt.timedelta,
 list_=list,list_int=list[int],tuple_=tuple,tuple_fix=tuple[int,str],tuple_var=tuple[int,...],tuple_empty=tuple[()],set_=set,set_str=set[str],set_int=set[int],set_enum=set[Color],set_float=set[float],set_date=set[dt.date],set_uuid=set[uuid.UUID],set_literal=set[Literal['a','b',3]],set_bool=set[bool],set_opt=set[T.Optional[str]],set_tuple=set[tuple[int,str]],set_url=set[p.HttpUrl],frozenset_=frozenset[str],deque=collections.deque[int],dict_=dict,dict_si=dict[str,int],dict_is=dict[int,str],dict_enum=dict[Color,int],dict_uuid=dict[uuid.UUID,int],dict_date=dict[dt.date,int],defaultdict=collections.defaultdict[str,int],ordered=collections.OrderedDict[str,int],counter=T.Counter[str],mapping=T.Mapping[str,int],
 typeddict=TD,namedtuple=NT,dataclass=DC,optional=T.Optional[int],union=T.Union[int,str,None],union_models=T.Union[Sub,TD],literal=Literal['a',1,True,None],sequence=T.Sequence[int],iterable=T.Iterable[int],pattern=re.Pattern,pattern_t=T.Pattern,decimal=decimal.Decimal,uuid=uuid.UUID,path=pathlib.Path,purepath=pathlib.PurePath,ip4=ipaddress.IPv4Address,ip4i=ipaddress.IPv4Interface,ip4n=ipaddress.IPv4Network,ip6=ipaddress.IPv6Address,ip6i=ipaddress.IPv6Interface,ip6n=ipaddress.IPv6Network,fraction=fractions.Fraction,complex_=complex,hashable=T.Hashable,callable_=T.Callable,type_=type[int],
 model=Sub,recursive=Rec,discr=Annotated[T.Union[Cat,Dog],Field(discriminator='kind')],forbid=Ext,allow=Allow,alias=Alias,fields=Big,generic=Gen[int],root=Roots,
 conint=p.conint(gt=1,lt=9),positive=p.PositiveInt,negative=p.NegativeInt,nonneg=p.NonNegativeInt,nonpos=p.NonPositiveInt,posf=p.PositiveFloat,negf=p.NegativeFloat,nnf=p.NonNegativeFloat,npf=p.NonPositiveFloat,finite=p.FiniteFloat,confloat=p.confloat(gt=0.5,le=2.5,multiple_of=0.5),strictint=p.StrictInt,strictstr=p.StrictStr,strictbool=p.StrictBool,strictbytes=p.StrictBytes,strictfloat=p.StrictFloat,constr=p.constr(min_length=2,max_length=5,to_upper=True),constr_pat=p.constr(pattern=r'^\d{3}-[A-Z]+$'),conbytes=p.conbytes(min_length=1,max_length=4),conlist=p.conlist(int,min_length=1,max_length=3),conset=p.conset(int,min_length=1,max_length=3),conset_str=p.conset(str,min_length=2),confrozenset=p.confrozenset(str,max_length=5),condecimal=p.condecimal(gt=0,max_digits=6,decimal_places=2),condate=p.condate(gt=dt.date(2020,1,1)),
 pastdate=p.PastDate,futuredate=p.FutureDate,aware=p.AwareDatetime,naive=p.NaiveDatetime,past=p.PastDatetime,future=p.FutureDatetime,
 uuid1=p.UUID1,uuid3=p.UUID3,uuid4=p.UUID4,uuid5=p.UUID5,uuid6=getattr(p,'UUID6',p.UUID1),uuid7=getattr(p,'UUID7',p.UUID1),filepath=p.FilePath,dirpath=p.DirectoryPath,newpath=p.NewPath,socket=getattr(p,'SocketPath',p.FilePath),
 b64b=p.Base64Bytes,b64s=p.Base64Str,b64ub=p.Base64UrlBytes,b64us=p.Base64UrlStr,json_=p.Json,json_list=p.Json[list[int]],secret=p.SecretStr,secretb=p.SecretBytes,secretint=p.Secret[int],import_=p.ImportString,bytesize=p.ByteSize,jsonvalue=p.JsonValue,
 anyurl=p.AnyUrl,anyhttp=p.AnyHttpUrl,http=p.HttpUrl,fileurl=p.FileUrl,ftp=net.FtpUrl,ws=net.WebsocketUrl,anyws=net.AnyWebsocketUrl,pg=p.PostgresDsn,cockroach=net.CockroachDsn,amqp=p.AmqpDsn,redis=p.RedisDsn,mongo=p.MongoDsn,kafka=p.KafkaDsn,nats=net.NatsDsn,mysql=net.MySQLDsn,maria=net.MariaDBDsn,clickhouse=net.ClickHouseDsn,snow=net.SnowflakeDsn,email=p.EmailStr,nameemail=p.NameEmail,ipany=p.IPvAnyAddress,ipanyn=p.IPvAnyNetwork,ipanyi=p.IPvAnyInterface)
extra={'color':['Color'],'country':['CountryAlpha2','CountryAlpha3','CountryNumericCode','CountryShortName'],'coordinate':['Latitude','Longitude','Coordinate'],'currency_code':['ISO4217','Currency'],'isbn':['ISBN'],'language_code':['LanguageAlpha2','LanguageName','ISO639_3'],'mac_address':['MacAddress'],'payment':['PaymentCardNumber'],'phone_numbers':['PhoneNumber'],'routing_number':['ABARoutingNumber'],'script_code':['ISO_15924'],'semantic_version':['SemanticVersion'],'semver':['_VersionPydanticAnnotation'],'timezone_name':['TimeZoneName'],'s3':['S3Path'],'domain':['DomainStr'],'epoch':['Number','Integer'],'path':['ResolvedFilePath']}

out, refused = [], 0
VALUES = [json.loads(t) for t in POOL]

def accepted(t):
    adapter = TypeAdapter(t)
    def accepts(text):
        try:
            adapter.validate_json(text)
            return True
        except Exception:
            return False
    return accepts

def add(name, schema, also=None, accepts=None):
    if len(json.dumps(schema)) > 12000:
        return
    check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    if schema.get('$schema', '').startswith('http://json-schema.org/draft-07'):
        check = jsonschema.Draft7Validator(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    if 'openapi' in name:
        check = jsonschema.Draft4Validator(schema)
    good, bad = [], []
    for i, v in enumerate(VALUES):
        try:
            ok = check.is_valid(v)
        except re.error: # properties: only ajv knows
            ok = also[i]
        if also is None or also[i] == ok:
            (good if ok else bad).append(POOL[i])
    if accepts: # what the type takes says more than what its schema does
        good.sort(key=lambda t: not accepts(t))
    # Bad ones of the types that are good come first: they say most.
    kind = lambda t: 'n' if t[0] in '-0123456789' else t[0]
    kinds = {kind(t) for t in good}
    bad.sort(key=lambda t: kind(t) not in kinds)
    out.append({'name': name, 'schema': schema, 'good': good[:16], 'bad': bad[:24]})

for k, t in std.items():
    try:
        s = TypeAdapter(t).json_schema()
    except Exception as e:
        print('no JSON schema:', k, type(e).__name__)
        continue
    add('pydantic ' + k, s, accepts=accepted(t))
for mod, names in extra.items():
    m = importlib.import_module('pydantic_extra_types.' + mod)
    for n in names:
        add('pydantic ' + n, TypeAdapter(getattr(m, n)).json_schema(), accepts=accepted(getattr(m, n)))
for line in open('zod.jsonl'):
    x = json.loads(line)
    add(x['name'], x['schema'], x.get('valid'))
with open('fields.jsonl', 'w') as f:
    for x in out:
        f.write(json.dumps(x, ensure_ascii=False, separators=(',', ':')) + '\n')
print(len(out), 'schemas')
