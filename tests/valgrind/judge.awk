# What valgrind reports that has to do with the module: each error once, by its kind and the
# first place of the module in it. Fails if there is any.

FNR == 1 { finish() }

{ sub(/^==[0-9]+== ?/, "") }

/^$/ { finish(); next }

# A report begins with a line that is no frame.
!/^ / || /^ [^ ]/ {
    if (frames) finish()
    if (kind == "") kind = $0
    text = text $0 "\n"
    next
}

/^    ?(at|by) 0x/ {
    frames++
    if (place == "" && (/librlock\.so/ || /rlock::/ || /redis_module::/ || /RedisModule_OnLoad/)) place = $0
}

{ text = text $0 "\n" }

function finish() {
    if (frames) reports++
    if (frames && place != "") {
        gsub(/[0-9,]+ (\([^)]*\) )?bytes in [0-9,]+ blocks are /, "", kind)
        gsub(/ in loss record .*/, "", kind)
        sub(/.*0x[0-9A-F]+: /, "", place)
        if (!((kind, place) in seen)) texts[++found] = text
        seen[kind, place]++
    }
    kind = text = place = ""
    frames = 0
}

END {
    finish()
    for (n = 1; n <= found; n++) print texts[n]
    printf "%d processes, %d reports, of rlock %d\n", ARGC - 1, reports, found
    exit found > 0
}
