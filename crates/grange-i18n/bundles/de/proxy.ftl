proxy = Grange-Proxy
proxy-only-archived = Dieser Browser sieht nur archivierte Seiten. Aus dem lebenden Web wird nichts geholt.
proxy-time = Zeit
proxy-closest-to = Am nächsten zu
proxy-set = Wählen
proxy-latest = Die neueste
proxy-index = Index
proxy-jobs = Jobs
proxy-only-these = Nur diese
proxy-missing = Fehlende Seiten
proxy-stop = Nicht mehr sammeln
proxy-start = Sammeln
proxy-forget = Vergessen
proxy-list = Auflisten
proxy-authority = Die Zertifizierungsstelle dieses Proxys
proxy-trust = Lassen Sie diesen Browser ihr vertrauen, um Seiten von HTTPS-Sites zu sehen. Sie wurde auf dem Rechner des Proxys erzeugt; entfernen Sie sie, wenn Sie fertig sind.
proxy-chain = Wer antwortet
proxy-cannot = Das geht nicht
proxy-confirm = Soll das geschehen?
proxy-confirm-why = Eine andere Seite verlangt dies. Wenn auch Sie es wollen, folgen Sie dem Link.

proxy-chosen-index = Index: { $index }
proxy-chosen-collection = die Sammlung { $name }
proxy-chosen-jobs = die Jobs { $jobs }
proxy-chosen-latest = Aufnahmen: die neueste
proxy-chosen-time = Aufnahmen: am nächsten zu { $time }
proxy-collected = { $count ->
    [one] { $count } fehlende Seite gesammelt
   *[other] { $count } fehlende Seiten gesammelt
}
