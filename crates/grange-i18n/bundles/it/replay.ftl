home-empty = Qui non c’è ancora nessuna collezione.
collection-size = { $captures } in { $files }
collection-address = Indirizzo di una pagina
collection-captures = Catture
collection-below = Tutto ciò che inizia così
collection-begin = Per iniziare

frame-captures = Catture
frame-previous = Precedente
    .title = Cattura precedente
frame-next = Successiva
    .title = Cattura successiva
frame-page = Pagina archiviata

calendar-title = { $url } – catture
calendar-one-year = { $captures } nel { $year }.
calendar-years = { $captures } dal { $first } al { $last }.
calendar-list = Come elenco
calendar-below = Tutto ciò che sta sotto
calendar-day = { $count } il { $day } { $month }

list-summary = { $captures }, { $versions }.
list-calendar = Calendario
list-captured = Catturata
list-version = Versione
list-stored = Spazio
list-digest = Impronta
list-job = Job
list-file = File
list-unchanged = invariata
list-same = { $count ->
    [one] { $count } cattura di questo contenuto
   *[other] { $count } catture di questo contenuto
}
list-later = Catture successive

urls-summary = { $urls }.
urls-summary-more = { $urls } e altri.
urls-url = URL
urls-captures = Catture
urls-first = Prima
urls-last = Ultima
urls-more = Altri

nothing-here = Qui non c’è niente
no-collection = Nessuna collezione di questo archivio ha questo nome. Ci sono:
missing = Questo archivio non ne ha alcuna cattura. Non interroga mai il web vivo.
missing-key = cercata la chiave { $key }
missing-any-time = in qualsiasi momento
missing-time = più vicina a { $time }, a qualsiasi distanza
missing-alike = poi catture che differiscono solo per elusioni della cache, callback e tracciatori
missing-below = Ciò che inizia così
broken = È stata catturata, ma nessuna cattura può essere mostrata ora. Tentativi:
broken-all = Tutte le sue catture
broken-loop = { $time }: rimanda a sé stessa

bad-address = Questo indirizzo non è leggibile
bad-address-form = Un indirizzo qui è /collezione/data/url, per esempio /local/2020/http://example.org/.
too-large = Questa richiesta è troppo grande
too-large-limit = Le richieste di oltre un megabyte non possono essere cercate.
bad-time = Questa data non è leggibile
bad-time-form = Accept-Datetime si scrive così: Thu, 02 Jan 2020 03:04:05 GMT.
too-many = Troppe richieste insieme
too-many-later = Riprovare tra un momento.
no-format = Questo formato non esiste
no-format-known = Si esporta in warc o wacz.
cannot-export = Non si può esportare
too-many-exports = Troppe esportazioni insieme
too-many-exports-later = Riprovare più tardi.
