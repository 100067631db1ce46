# The pages of the proxy itself.

proxy = Grange proxy
proxy-only-archived = This browser sees archived pages only. Nothing is fetched from the live web.
proxy-time = Time
proxy-closest-to = Closest to
proxy-set = Set
proxy-latest = The latest
proxy-index = Index
proxy-jobs = Jobs
proxy-only-these = Only these
proxy-missing = Missing pages
proxy-stop = Stop collecting
proxy-start = Start collecting
proxy-forget = Forget them
proxy-list = List them
proxy-authority = The authority of this proxy
proxy-trust = Let this browser trust it to see pages of HTTPS sites. It was made on the proxy's machine; remove it when you are done.
proxy-chain = Who answers
proxy-cannot = This cannot be done
proxy-confirm = Do this?
proxy-confirm-why = Another page asks for this. If you want it too, follow the link.

# What a reader has chosen.
proxy-chosen-index = Index: { $index }
proxy-chosen-collection = the collection { $name }
proxy-chosen-jobs = the jobs { $jobs }
proxy-chosen-latest = Captures: the latest
proxy-chosen-time = Captures: closest to { $time }
proxy-collected = { $count ->
    [one] { $count } missing page collected
   *[other] { $count } missing pages collected
}
