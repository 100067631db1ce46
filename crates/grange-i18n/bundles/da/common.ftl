month-1 = januar
month-2 = februar
month-3 = marts
month-4 = april
month-5 = maj
month-6 = juni
month-7 = juli
month-8 = august
month-9 = september
month-10 = oktober
month-11 = november
month-12 = december

weekday-1 = mandag
    .letter = M
weekday-2 = tirsdag
    .letter = T
weekday-3 = onsdag
    .letter = O
weekday-4 = torsdag
    .letter = T
weekday-5 = fredag
    .letter = F
weekday-6 = lørdag
    .letter = L
weekday-7 = søndag
    .letter = S

moment = { $day }. { $month } { $year } kl. { $time } UTC

captures = { $count ->
    [one] { $count } høstning
   *[other] { $count } høstninger
}
captures-at-least = { $count } høstninger eller flere
files = { $count ->
    [one] { $count } fil
   *[other] { $count } filer
}
versions = { $count ->
    [one] { $count } version
   *[other] { $count } versioner
}
urls = { $count ->
    [one] { $count } URL
   *[other] { $count } URL’er
}

web-archive = Webarkiv
all-collections = Alle samlinger
whole-host = Hele værten
as-wacz = Som WACZ
status = Status
type = Type

not-in-archive = Ikke i arkivet
not-available = Ikke tilgængelig
cannot-be-shown = Den kan ikke vises

hidden-blocked = Denne side er blokeret.
hidden-documentation = Dette er dokumentation af en høstning, som ikke alle må se.
hidden-embargo = Denne side er spærret i en periode efter høstningen.
hidden-networks = Denne side kan kun ses i arkivets lokaler.
hidden-users = Denne side kan kun ses af bestemte brugere.
