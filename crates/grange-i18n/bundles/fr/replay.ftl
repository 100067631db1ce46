home-empty = Il n’y a pas encore de collection ici.
collection-size = { $captures } dans { $files }
collection-address = Adresse d’une page
collection-captures = Captures
collection-below = Tout ce qui commence ainsi
collection-begin = Commencer ici

frame-captures = Captures
frame-previous = Précédente
    .title = Capture précédente
frame-next = Suivante
    .title = Capture suivante
frame-page = Page archivée

calendar-title = { $url } – captures
calendar-one-year = { $captures } en { $year }.
calendar-years = { $captures } de { $first } à { $last }.
calendar-list = En liste
calendar-below = Tout ce qui est au-dessous
calendar-day = { $count } le { $day } { $month }

list-summary = { $captures }, { $versions }.
list-calendar = Calendrier
list-captured = Capturée
list-version = Version
list-stored = Stocké
list-digest = Empreinte
list-job = Tâche
list-file = Fichier
list-unchanged = inchangée
list-same = { $count ->
    [one] { $count } capture de ce contenu
   *[other] { $count } captures de ce contenu
}
list-later = Captures suivantes

urls-summary = { $urls }.
urls-summary-more = { $urls } et d’autres.
urls-url = URL
urls-captures = Captures
urls-first = Première
urls-last = Dernière
urls-more = Suite

nothing-here = Il n’y a rien ici
no-collection = Aucune collection de cette archive ne porte ce nom. Il y a :
missing = Cette archive n’en a aucune capture. Elle n’interroge jamais le Web vivant.
missing-key = recherche de la clé { $key }
missing-any-time = à toute date
missing-time = au plus près de { $time }, à toute distance
missing-alike = puis de captures qui ne diffèrent que par des contournements de cache, des callbacks et des traceurs
missing-below = Ce qui commence ainsi
broken = Elle a été capturée, mais aucune capture ne peut être affichée pour l’instant. Essais :
broken-all = Toutes ses captures
broken-loop = { $time } : elle redirige vers elle-même

bad-address = Cette adresse est illisible
bad-address-form = Une adresse s’écrit ici /collection/date/url, par exemple /local/2020/http://example.org/.
too-large = Cette requête est trop grande
too-large-limit = Les requêtes de plus d’un mégaoctet ne peuvent pas être recherchées.
bad-time = Cette date est illisible
bad-time-form = Accept-Datetime s’écrit ainsi : Thu, 02 Jan 2020 03:04:05 GMT.
too-many = Trop de demandes à la fois
too-many-later = Réessayez dans un instant.
no-format = Ce format n’existe pas
no-format-known = Les exports sont en warc ou en wacz.
cannot-export = Export impossible
too-many-exports = Trop d’exports à la fois
too-many-exports-later = Réessayez un peu plus tard.
