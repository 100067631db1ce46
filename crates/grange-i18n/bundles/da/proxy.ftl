proxy = Grange-proxy
proxy-only-archived = Denne browser ser kun arkiverede sider. Intet hentes fra det levende web.
proxy-time = Tid
proxy-closest-to = Tættest på
proxy-set = Vælg
proxy-latest = Den seneste
proxy-index = Indeks
proxy-jobs = Job
proxy-only-these = Kun disse
proxy-missing = Manglende sider
proxy-stop = Stop indsamling
proxy-start = Start indsamling
proxy-forget = Glem dem
proxy-list = Vis dem
proxy-authority = Denne proxys certifikatudsteder
proxy-trust = Lad denne browser stole på den for at se sider fra HTTPS-steder. Den er lavet på proxyens maskine; fjern den, når du er færdig.
proxy-chain = Hvem der svarer
proxy-cannot = Dette kan ikke gøres
proxy-confirm = Skal dette gøres?
proxy-confirm-why = En anden side beder om dette. Følg linket, hvis du også vil det.

proxy-chosen-index = Indeks: { $index }
proxy-chosen-collection = samlingen { $name }
proxy-chosen-jobs = job { $jobs }
proxy-chosen-latest = Høstninger: den seneste
proxy-chosen-time = Høstninger: tættest på { $time }
proxy-collected = { $count ->
    [one] { $count } manglende side indsamlet
   *[other] { $count } manglende sider indsamlet
}
