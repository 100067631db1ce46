#!/usr/bin/env python3
"""Compares this crate's `ia` keys with PyPI surt over generated odd URLs.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install surt==0.3.1
    cargo build --release -p urlkey --example keys
    /tmp/venv/bin/python libs/urlkey/tests/differential.py target/release/examples/keys [seed] [count]

A URL that surt refuses is expected to be its own key, as cdxj-indexer writes it. Not expected to agree: such
URLs when they are not UTF-8 (our keys are text, so those bytes are replaced); they are left out.
"""
import random
import subprocess
import sys

from surt import surt

KEYS = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
random.seed(SEED)

J='0123456789abcdef0123456789ABCDEF'; A='abcdefghijklmnopqrstuvwx'
schemes=['http://']*20+['https://']*12+['HTTP://','Http://','https:','http:','http:/','http:///','','','//','ftp://','dns:','urn:','mailto:','http://http://','http://https://','whois://','javascript:','file:///','warcinfo:','screenshot:http://','data:',' http://','\thttp://','httpx:','HTTPS:/','rtsp://','filedesc:']
labels=['a','example','EXAMPLE','www','www2','www12','WWW','com','co','uk','org','xn--bcher-kva','bücher','straße','é','日本','x_y','-a','a-','','1','08','192','256','0x7f','%77','%2e','%41','under_score','ﬀ','İ','Σς','١٢','\u200d','a'*64,'ü'*40,'%C3%BC','%FC','a b','*','~','!']
def host():
    r=random.random()
    if r<.1: return '.'.join(str(random.choice([0,1,7,8,10,127,192,255,256,300,'010','08','00','0x1'])) for _ in range(random.randint(1,5)))
    if r<.13: return str(random.randint(0,2**40))
    if r<.17: return random.choice(['[::1]','[2001:db8::1]','[2001:DB8:0:0:0:0:0:1]','[::ffff:1.2.3.4]','[bad','x]y','[fe80::1%25eth0]','[1:2:3:4:5:6:7:8]','[]'])
    if r<.6: return random.choice(['www.','','WWW.','www3.','shop.'])+random.choice(['example','test','a-b','x1'])+'.'+random.choice(['com','org','co.uk','de'])
    return random.choice(['.','..'] + ['.']*12).join(random.choice(labels) for _ in range(random.randint(1,5)))+random.choice(['']*8+['.','..'])
def port(): return random.choice(['']*16+[':80',':443',':8080',':0',':',':080','::',':65536',':x',':80:90',':65535',':99999999999'])
def ui(): return random.choice(['']*14+['u@','u:p@','u@v@','@',':@','u%40:p@'])
segs=['a','b','A','index.html','.','..','','','%2e','%2E%2e','%2f','%41','%2541','%25','%','%4','%zz','é','caf%C3%A9','caf%E9','x y','x%20y','a;jsessionid='+J,'('+A+')','(S('+A+'))','(S('+A+')F('+A+'))','('+A+'x)','page.aspx','.aspx','X.ASPX','~user','%7Euser','a,b','(x)','a=b','a&b','%3F','%23','"q"','<x>','|','\\','^','`','{x}','[y]','\x7f','\x01','a+b','a%2Bb','\u0130','日本','.well-known','...','a.','%0a','%00','a:b','@','!','$',"'",'*']
def path():
    if random.random()<.08: return ''
    return '/'+'/'.join(random.choice(segs) for _ in range(random.randint(0,5)))+random.choice(['','','/','//'])
args=['a','b','a=1','a=2','b=','=','=x','','&','A=B','jsessionid='+J,'JSESSIONID='+J,'xjsessionid='+J,'jsessionid='+J+'0','phpsessid='+J,'PHPSESSID='+J,'sid='+J,'sid=0123456789abcdef','ASPSESSIONIDabcdefgh='+A,'aspsessionidabcdefg1='+A,'cfid=1','cftoken=2','CFID=1&CFTOKEN=2','cfid=12&cftoken=a-b-9','cfid=&cftoken=1','sessionid='+J,'a-b=1','a=b=c','a%3D1','a%26b','x=%20','x=é','x=%E9','q=a+b','u=http://x.com/?y=1','utm_source=x','a?b','/../','%25','%2525','x=%C3%A9','b[]=1','a;b','x=%0a','x= y','x=\x80','%','a%']
def query():
    if random.random()<.45: return ''
    return '?'+'&'.join(random.choice(args) for _ in range(random.randint(0,5)))

def frag():
    return random.choice([""] * 8 + ["#", "#x", "#?a", "#a#b", "#/../x"])


def odd_url():
    url = random.choice(schemes) + ui() + host() + port() + path() + query() + frag()
    if random.random() < 0.03:
        url = random.choice([" ", "\t", "\x0b"]) + url + random.choice([" ", "\r", "\t "])
    if random.random() < 0.02 and url:
        at = random.randrange(len(url))
        url = url[:at] + random.choice(["\t", "\r", "\u3002", "?", "#", "/", ":", "%", "@"]) + url[at:]
    raw = url.encode("utf-8")
    if random.random() < 0.03:
        at = random.randrange(len(raw) + 1)
        raw = raw[:at] + bytes([random.choice([0xE9, 0xFF, 0x80, 0xC3, 0])]) + raw[at:]
    return raw.replace(b"\n", b"")


def is_text(raw):
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


urls, want = [], []
for _ in range(COUNT):
    raw = odd_url()
    try:
        key = surt(raw)
    except Exception:
        key = raw
    if is_text(key) and b"\n" not in key:
        urls.append(raw)
        want.append(key)
got = subprocess.run([KEYS, "ia"], input=b"\n".join(urls) + b"\n", stdout=subprocess.PIPE, check=True).stdout
got = got.split(b"\n")[:-1]
assert len(got) == len(want)
differ = [(u, w, g) for u, w, g in zip(urls, want, got) if w != g]
for u, w, g in differ[:20]:
    print("url ", u, "\nsurt", w, "\nours", g, "\n")
print(f"seed {SEED}: {len(urls)} URLs, {len(differ)} differ")
sys.exit(1 if differ else 0)
