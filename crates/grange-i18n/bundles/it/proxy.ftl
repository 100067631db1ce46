proxy = Proxy Grange
proxy-only-archived = Questo browser vede solo pagine archiviate. Nulla viene richiesto al web vivo.
proxy-time = Data
proxy-closest-to = Più vicina a
proxy-set = Scegli
proxy-latest = La più recente
proxy-index = Indice
proxy-jobs = Job
proxy-only-these = Solo questi
proxy-missing = Pagine mancanti
proxy-stop = Smetti di raccogliere
proxy-start = Inizia a raccogliere
proxy-forget = Dimentica
proxy-list = Elenca
proxy-authority = L’autorità di questo proxy
proxy-trust = Questo browser deve fidarsene per vedere le pagine dei siti HTTPS. È stata creata sulla macchina del proxy; va rimossa alla fine.
proxy-chain = Chi risponde
proxy-cannot = Non si può fare
proxy-confirm = Procedere?
proxy-confirm-why = Lo chiede un’altra pagina. Se lo si vuole davvero, seguire il link.

proxy-chosen-index = Indice: { $index }
proxy-chosen-collection = la collezione { $name }
proxy-chosen-jobs = i job { $jobs }
proxy-chosen-latest = Catture: la più recente
proxy-chosen-time = Catture: più vicina a { $time }
proxy-collected = { $count ->
    [one] { $count } pagina mancante raccolta
   *[other] { $count } pagine mancanti raccolte
}
