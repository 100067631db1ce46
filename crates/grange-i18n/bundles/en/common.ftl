# Words that several pages share.

month-1 = January
month-2 = February
month-3 = March
month-4 = April
month-5 = May
month-6 = June
month-7 = July
month-8 = August
month-9 = September
month-10 = October
month-11 = November
month-12 = December

# The letter heads a column of the calendar.
weekday-1 = Monday
    .letter = M
weekday-2 = Tuesday
    .letter = T
weekday-3 = Wednesday
    .letter = W
weekday-4 = Thursday
    .letter = T
weekday-5 = Friday
    .letter = F
weekday-6 = Saturday
    .letter = S
weekday-7 = Sunday
    .letter = S

# $day and $year are digits, $time is hours:minutes:seconds.
moment = { $day } { $month } { $year }, { $time } UTC

captures = { $count ->
    [one] { $count } capture
   *[other] { $count } captures
}
captures-at-least = { $count } captures or more
files = { $count ->
    [one] { $count } file
   *[other] { $count } files
}
versions = { $count ->
    [one] { $count } version
   *[other] { $count } versions
}
urls = { $count ->
    [one] { $count } URL
   *[other] { $count } URLs
}

web-archive = Web archive
all-collections = All collections
whole-host = The whole host
as-wacz = As WACZ
status = Status
type = Type

not-in-archive = Not in the archive
not-available = Not available
cannot-be-shown = It cannot be shown

# Why a rule of access hides a page.
hidden-blocked = This page has been blocked.
hidden-documentation = This is the documentation of a crawl, which not everybody may see.
hidden-embargo = This page is under embargo for some time after its capture.
hidden-networks = This page can be seen on the premises of the archive only.
hidden-users = This page can be seen by certain users only.
