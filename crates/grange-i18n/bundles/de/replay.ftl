home-empty = Hier gibt es noch keine Sammlung.
collection-size = { $captures } in { $files }
collection-address = Adresse einer Seite
collection-captures = Aufnahmen
collection-below = Alle, die so beginnen
collection-begin = Hier beginnen

frame-captures = Aufnahmen
frame-previous = Vorige
    .title = Vorige Aufnahme
frame-next = Nächste
    .title = Nächste Aufnahme
frame-page = Archivierte Seite

calendar-title = { $url } – Aufnahmen
calendar-one-year = { $captures } im Jahr { $year }.
calendar-years = { $captures } von { $first } bis { $last }.
calendar-list = Als Liste
calendar-below = Alles darunter
calendar-day = { $count } am { $day }. { $month }

list-summary = { $captures }, { $versions }.
list-calendar = Kalender
list-captured = Aufgenommen
list-version = Fassung
list-stored = Gespeichert
list-digest = Prüfsumme
list-job = Job
list-file = Datei
list-unchanged = unverändert
list-same = { $count ->
    [one] { $count } Aufnahme mit diesem Inhalt
   *[other] { $count } Aufnahmen mit diesem Inhalt
}
list-later = Spätere Aufnahmen

urls-summary = { $urls }.
urls-summary-more = { $urls } und weitere.
urls-url = URL
urls-captures = Aufnahmen
urls-first = Erste
urls-last = Letzte
urls-more = Mehr

nothing-here = Hier ist nichts
no-collection = Keine Sammlung dieses Archivs heißt so. Es gibt:
missing = Dieses Archiv hat keine Aufnahme davon. Es fragt nie das lebende Web.
missing-key = gesucht wurde nach dem Schlüssel { $key }
missing-any-time = zu beliebiger Zeit
missing-time = am nächsten zu { $time }, in beliebigem Abstand
missing-alike = dann nach Aufnahmen, die sich nur in Cache-Umgehungen, Callbacks und Trackern unterscheiden
missing-below = Was so beginnt
broken = Es gibt Aufnahmen, aber keine kann zurzeit gezeigt werden. Versucht wurde:
broken-all = Alle Aufnahmen davon
broken-loop = { $time }: sie leitet auf sich selbst um

bad-address = Diese Adresse ist nicht lesbar
bad-address-form = Eine Adresse ist hier /Sammlung/Zeit/URL, etwa /local/2020/http://example.org/.
too-large = Diese Anfrage ist zu groß
too-large-limit = Anfragen mit mehr als einem Megabyte können nicht nachgeschlagen werden.
bad-time = Diese Zeit ist nicht lesbar
bad-time-form = Accept-Datetime schreibt man so: Thu, 02 Jan 2020 03:04:05 GMT.
too-many = Zu viele fragen gleichzeitig
too-many-later = Bitte versuchen Sie es gleich noch einmal.
no-format = Dieses Format gibt es nicht
no-format-known = Exportiert wird als warc oder wacz.
cannot-export = Das kann nicht exportiert werden
too-many-exports = Zu viele Exporte gleichzeitig
too-many-exports-later = Bitte versuchen Sie es später noch einmal.
