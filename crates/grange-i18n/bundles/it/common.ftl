month-1 = gennaio
month-2 = febbraio
month-3 = marzo
month-4 = aprile
month-5 = maggio
month-6 = giugno
month-7 = luglio
month-8 = agosto
month-9 = settembre
month-10 = ottobre
month-11 = novembre
month-12 = dicembre

weekday-1 = lunedì
    .letter = L
weekday-2 = martedì
    .letter = M
weekday-3 = mercoledì
    .letter = M
weekday-4 = giovedì
    .letter = G
weekday-5 = venerdì
    .letter = V
weekday-6 = sabato
    .letter = S
weekday-7 = domenica
    .letter = D

moment = { $day } { $month } { $year }, { $time } UTC

captures = { $count ->
    [one] { $count } cattura
   *[other] { $count } catture
}
captures-at-least = { $count } catture o più
files = { $count ->
    [one] { $count } file
   *[other] { $count } file
}
versions = { $count ->
    [one] { $count } versione
   *[other] { $count } versioni
}
urls = { $count ->
    [one] { $count } URL
   *[other] { $count } URL
}

web-archive = Archivio web
all-collections = Tutte le collezioni
whole-host = L’intero host
as-wacz = Come WACZ
status = Stato
type = Tipo

not-in-archive = Non è nell’archivio
not-available = Non disponibile
cannot-be-shown = Non si può mostrare

hidden-blocked = Questa pagina è stata bloccata.
hidden-documentation = Questa è la documentazione di una raccolta, che non tutti possono vedere.
hidden-embargo = Questa pagina è sotto embargo per un certo periodo dopo la cattura.
hidden-networks = Questa pagina si può vedere solo nei locali dell’archivio.
hidden-users = Questa pagina può essere vista solo da alcuni utenti.
