month-1 = Januar
month-2 = Februar
month-3 = März
month-4 = April
month-5 = Mai
month-6 = Juni
month-7 = Juli
month-8 = August
month-9 = September
month-10 = Oktober
month-11 = November
month-12 = Dezember

weekday-1 = Montag
    .letter = M
weekday-2 = Dienstag
    .letter = D
weekday-3 = Mittwoch
    .letter = M
weekday-4 = Donnerstag
    .letter = D
weekday-5 = Freitag
    .letter = F
weekday-6 = Samstag
    .letter = S
weekday-7 = Sonntag
    .letter = S

moment = { $day }. { $month } { $year }, { $time } UTC

captures = { $count ->
    [one] { $count } Aufnahme
   *[other] { $count } Aufnahmen
}
captures-at-least = { $count } oder mehr Aufnahmen
files = { $count ->
    [one] { $count } Datei
   *[other] { $count } Dateien
}
versions = { $count ->
    [one] { $count } Fassung
   *[other] { $count } Fassungen
}
urls = { $count ->
    [one] { $count } URL
   *[other] { $count } URLs
}

web-archive = Webarchiv
all-collections = Alle Sammlungen
whole-host = Der ganze Host
as-wacz = Als WACZ
status = Status
type = Typ

not-in-archive = Nicht im Archiv
not-available = Nicht verfügbar
cannot-be-shown = Das kann nicht gezeigt werden

hidden-blocked = Diese Seite ist gesperrt.
hidden-documentation = Das ist die Dokumentation eines Harvestings, die nicht alle sehen dürfen.
hidden-embargo = Diese Seite ist nach ihrer Aufnahme für einige Zeit gesperrt.
hidden-networks = Diese Seite ist nur in den Räumen des Archivs zu sehen.
hidden-users = Diese Seite ist nur für bestimmte Benutzer zu sehen.
