month-1 = janvier
month-2 = février
month-3 = mars
month-4 = avril
month-5 = mai
month-6 = juin
month-7 = juillet
month-8 = août
month-9 = septembre
month-10 = octobre
month-11 = novembre
month-12 = décembre

weekday-1 = lundi
    .letter = L
weekday-2 = mardi
    .letter = M
weekday-3 = mercredi
    .letter = M
weekday-4 = jeudi
    .letter = J
weekday-5 = vendredi
    .letter = V
weekday-6 = samedi
    .letter = S
weekday-7 = dimanche
    .letter = D

moment = { $day } { $month } { $year } à { $time } UTC

captures = { $count ->
    [one] { $count } capture
   *[other] { $count } captures
}
captures-at-least = { $count } captures ou plus
files = { $count ->
    [one] { $count } fichier
   *[other] { $count } fichiers
}
versions = { $count ->
    [one] { $count } version
   *[other] { $count } versions
}
urls = { $count ->
    [one] { $count } URL
   *[other] { $count } URL
}

web-archive = Archive du Web
all-collections = Toutes les collections
whole-host = Tout l’hôte
as-wacz = En WACZ
status = Statut
type = Type

not-in-archive = Absent de l’archive
not-available = Non disponible
cannot-be-shown = Affichage impossible

hidden-blocked = Cette page a été bloquée.
hidden-documentation = Ceci est la documentation d’une collecte, que tout le monde ne peut pas voir.
hidden-embargo = Cette page est sous embargo pendant un certain temps après sa capture.
hidden-networks = Cette page ne peut être vue que dans les locaux de l’archive.
hidden-users = Cette page ne peut être vue que par certains utilisateurs.
