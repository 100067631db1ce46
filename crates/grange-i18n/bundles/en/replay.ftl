# The pages of Wayback mode.

home-empty = There is no collection here yet.
# How much a collection has: both are counted things, such as "3 captures" and "1 file".
collection-size = { $captures } in { $files }
collection-address = Address of a page
collection-captures = Captures
collection-below = All that begin with it
collection-begin = Begin here

frame-captures = Captures
frame-previous = Previous
    .title = Previous capture
frame-next = Next
    .title = Next capture
frame-page = Archived page

calendar-title = { $url } – captures
calendar-one-year = { $captures } in { $year }.
calendar-years = { $captures } from { $first } to { $last }.
calendar-list = As a list
calendar-below = Everything below it
# A day of the calendar.
calendar-day = { $count } on { $day } { $month }

list-summary = { $captures }, { $versions }.
list-calendar = Calendar
list-captured = Captured
list-version = Version
list-stored = Stored
list-digest = Digest
list-job = Job
list-file = File
list-unchanged = unchanged
list-same = { $count ->
    [one] { $count } capture of this content
   *[other] { $count } captures of this content
}
list-later = Later captures

urls-summary = { $urls }.
urls-summary-more = { $urls } and more.
urls-url = URL
urls-captures = Captures
urls-first = First
urls-last = Last
urls-more = More

nothing-here = There is nothing here
no-collection = No collection of this archive has that name. There are:
missing = This archive has no capture of it. It never asks the live web.
missing-key = looked for the key { $key }
missing-any-time = at any time
missing-time = closest to { $time }, at any distance
missing-alike = then for captures that differ only in cache busters, callbacks and trackers
missing-below = What begins with it
broken = It was captured, but no capture can be shown now. What was tried:
broken-all = All captures of it
broken-loop = { $time }: it redirects to itself

bad-address = This address cannot be read
bad-address-form = An address here is /collection/time/url, such as /local/2020/http://example.org/.
too-large = This request is too large
too-large-limit = Requests with more than a megabyte cannot be looked up.
bad-time = This time cannot be read
bad-time-form = Accept-Datetime is written as in: Thu, 02 Jan 2020 03:04:05 GMT.
too-many = Too many ask at once
too-many-later = Try again in a moment.
no-format = There is no such format
no-format-known = Exports are warc or wacz.
cannot-export = This cannot be exported
too-many-exports = Too many exports at once
too-many-exports-later = Try again in a while.
