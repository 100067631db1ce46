home-empty = Her er endnu ingen samlinger.
collection-size = { $captures } i { $files }
collection-address = Adressen på en side
collection-captures = Høstninger
collection-below = Alle, der begynder med den
collection-begin = Begynd her

frame-captures = Høstninger
frame-previous = Forrige
    .title = Forrige høstning
frame-next = Næste
    .title = Næste høstning
frame-page = Arkiveret side

calendar-title = { $url } – høstninger
calendar-one-year = { $captures } i { $year }.
calendar-years = { $captures } fra { $first } til { $last }.
calendar-list = Som liste
calendar-below = Alt under den
calendar-day = { $count } den { $day }. { $month }

list-summary = { $captures }, { $versions }.
list-calendar = Kalender
list-captured = Høstet
list-version = Version
list-stored = Gemt
list-digest = Kontrolsum
list-job = Job
list-file = Fil
list-unchanged = uændret
list-same = { $count ->
    [one] { $count } høstning med dette indhold
   *[other] { $count } høstninger med dette indhold
}
list-later = Senere høstninger

urls-summary = { $urls }.
urls-summary-more = { $urls } og flere.
urls-url = URL
urls-captures = Høstninger
urls-first = Første
urls-last = Sidste
urls-more = Flere

nothing-here = Her er ingenting
no-collection = Ingen samling i dette arkiv har det navn. Der er:
missing = Dette arkiv har ingen høstning af den. Det spørger aldrig det levende web.
missing-key = der blev søgt efter nøglen { $key }
missing-any-time = til enhver tid
missing-time = tættest på { $time }, uanset afstand
missing-alike = derefter efter høstninger, der kun adskiller sig ved cache-brydere, callbacks og sporing
missing-below = Hvad der begynder med den
broken = Den er høstet, men ingen høstning kan vises nu. Det blev forsøgt:
broken-all = Alle høstninger af den
broken-loop = { $time }: den omdirigerer til sig selv

bad-address = Denne adresse kan ikke læses
bad-address-form = En adresse her er /samling/tid/url, for eksempel /local/2020/http://example.org/.
too-large = Denne forespørgsel er for stor
too-large-limit = Forespørgsler på mere end en megabyte kan ikke slås op.
bad-time = Denne tid kan ikke læses
bad-time-form = Accept-Datetime skrives som i: Thu, 02 Jan 2020 03:04:05 GMT.
too-many = For mange spørger på én gang
too-many-later = Prøv igen om et øjeblik.
no-format = Det format findes ikke
no-format-known = Eksport er warc eller wacz.
cannot-export = Dette kan ikke eksporteres
too-many-exports = For mange eksporter på én gang
too-many-exports-later = Prøv igen om lidt.
