proxy = Proxy Grange
proxy-only-archived = Ce navigateur ne voit que des pages archivées. Rien n’est demandé au Web vivant.
proxy-time = Date
proxy-closest-to = Au plus près de
proxy-set = Choisir
proxy-latest = La plus récente
proxy-index = Index
proxy-jobs = Tâches
proxy-only-these = Seulement celles-ci
proxy-missing = Pages manquantes
proxy-stop = Arrêter la collecte
proxy-start = Commencer la collecte
proxy-forget = Les oublier
proxy-list = Les afficher
proxy-authority = L’autorité de ce proxy
proxy-trust = Faites-lui confiance dans ce navigateur pour voir les pages des sites HTTPS. Elle a été créée sur la machine du proxy ; retirez-la quand vous aurez fini.
proxy-chain = Qui répond
proxy-cannot = C’est impossible
proxy-confirm = Faut-il le faire ?
proxy-confirm-why = Une autre page le demande. Si vous le voulez aussi, suivez le lien.

proxy-chosen-index = Index : { $index }
proxy-chosen-collection = la collection { $name }
proxy-chosen-jobs = les tâches { $jobs }
proxy-chosen-latest = Captures : la plus récente
proxy-chosen-time = Captures : au plus près de { $time }
proxy-collected = { $count ->
    [one] { $count } page manquante collectée
   *[other] { $count } pages manquantes collectées
}
