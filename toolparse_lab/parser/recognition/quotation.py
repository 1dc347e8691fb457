"""Is a call in a text meant, or only shown? Evidence for both, weighed."""

# How it works
# ------------
# What is around a call is evidence: the form it is written in, a frame (a quotation, a fence, a
# diff), the sentence that leads to it, and what follows. Each piece has a name, a weight and a
# reason (`EVIDENCE`); positive weights say that the call is shown. A call whose weights add up to
# more than zero is shown. No word of a sentence does that alone: the form always counts against it.
#
# While a text comes, `fences` weighs what is before a call, and waits for what follows only if
# something speaks against it. At the end `surroundings` weighs both sides of every call.
#
# Words are looked at in the last sentence before the call, and only if it introduces the call. An
# example is introduced by a word at the sentence's beginning or end; in its middle the word speaks
# of something else ("for example on the pages of the harbour:").

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


class Evidence(NamedTuple):
    """One piece of evidence. A positive weight says that the call is shown."""

    name: str
    weight: float
    reason: str


_TABLE = (
    # how the call is written
    Evidence("delimiters", -2.0, "it has the delimiters of its format"),
    Evidence("fence", -1.0, "a fence holds nothing but the call"),
    Evidence("line", -1.0, "the call has lines of its own"),
    # frames
    Evidence("code", 9.0, "it is inside quoted code"),
    Evidence("quotation", 9.0, "it is inside a quotation"),
    Evidence("in-fence", 2.0, "it is inside a fence"),
    Evidence("other-code", 3.0, "other lines stand in the same fence"),
    Evidence("indented", 2.5, "it is in an indented block"),
    Evidence("indented-token", 0.5, "it is indented"),
    Evidence("block", 0.25, "a line of marks opens a block before it"),
    Evidence("closed-block", 4.0, "the same marks close the block after it"),
    Evidence("diff", 5.0, "it is a line of a diff"),
    Evidence("diff-line", 0.5, "its line begins with the sign of a diff"),
    Evidence("transcript", 5.0, "it is a line of a transcript"),
    Evidence("page", 4.0, "it is an element of a page"),
    Evidence("beside-element", 0.5, "an element of a page is before it"),
    Evidence("step", 0.5, "a numbered step leads to it"),
    Evidence("among", 1.5, "another call before it is only shown"),
    Evidence("lazy", 5.0, "it goes on with a quotation"),
    # the sentence before
    Evidence("example", 3.5, "the words before it introduce an example"),
    Evidence("reported", 3.5, "the words before it are about what somebody else says"),
    Evidence("refusal", 2.5, "the words before it say that it is not done"),
    Evidence("instead", 1.0, "the words before it are about something else to do"),
    Evidence("advice", 2.25, "the words before it say what others can do"),
    Evidence("about-calls", 2.5, "the words before it are about calls in general"),
    Evidence("format", 1.5, "the words before it are about a format"),
    Evidence("past", 2.75, "the words before it tell what was done"),
    Evidence("unsaid", 1.25, "the words before it do not say that it is done"),
    Evidence("intent", -1.5, "the words before it say that it is done"),
    # the call, and what follows
    Evidence("placeholder", 2.5, "a value of it is a placeholder"),
    Evidence("last", -1.0, "nothing follows it"),
    Evidence("words-after", 1.0, "words follow it"),
    Evidence("few-words-after", -0.5, "a word or two follow it"),
    Evidence("explained", 1.5, "the words after it explain it"),
    Evidence("adapted", 2.5, "the words after it say what to change in it"),
    Evidence("asks", 3.25, "the words around it ask if it may be done"),
    Evidence("question", 1.25, "a question to the reader ends the answer"),
    Evidence("sentence", 3.5, "a sentence goes on after it"),
    Evidence("labels", 3.0, "labels are before and after it"),
    Evidence("contrast", 3.0, "it is held against something else"),
    Evidence("letter", 3.0, "it is in a letter"),
    Evidence("closed-markup", 4.0, "a block of markup ends after it"),
    Evidence("intent-after", -1.5, "the words after it go on with the work"),
    Evidence("request", 3.5, "the request asks for an example"),
)
EVIDENCE: dict[str, Evidence] = {evidence.name: evidence for evidence in _TABLE}
_AT_MOST_AFTER = -1.0  # what the text after a call can say at most for it


def score(names: Iterable[str]) -> float:
    """Return the sum of the weights: more than zero says that the call is shown.

    >>> score(["delimiters", "in-fence", "last"]), score(["delimiters", "in-fence", "example"])
    (-1.0, 3.5)
    """
    return sum(EVIDENCE[name].weight for name in names)


def is_settled(names: Iterable[str]) -> bool:
    """Return True if the call is shown whatever follows it."""
    return score(names) + _AT_MOST_AFTER > 0


def reasons(names: Iterable[str]) -> str:
    """Return the evidence that a call is shown, as one phrase.

    >>> reasons(["delimiters", "in-fence", "example"])
    'it is inside a fence, the words before it introduce an example'
    """
    shown = [EVIDENCE[name] for name in names if EVIDENCE[name].weight > 0]
    return ", ".join(evidence.reason for evidence in shown)


# words, by what they are evidence of
#
# Words of Latin and Cyrillic letters are whole; the other scripts have no borders between words.


def _words(latin: str, other: str = "") -> re.Pattern[str]:
    borders = rf"(?<!\w)(?:{latin})(?!\w)"
    return re.compile(f"{borders}|{other}" if other else borders, re.IGNORECASE)


# "for example", which is about what follows, and "example", which may be part of any phrase.
_SUCH_AS = (
    r"for example|for instance|e\.\s?g|such as|like th(?:is|at|ese)|like so|hypothetically"
    r"|zum beispiel|beispielsweise|z\.\s?b|etwa so|so etwa"
    r"|par exemple|p\.\s?ex|comme (?:ceci|cela|ça|suit)|por ejemplo|p\.\s?ej|por exemplo"
    r"|ad esempio|per esempio|bijvoorbeeld|bijv|na przykład|np|например|наприклад"
    r"|til eksempel|till exempel|esimerkiksi|örneğin|ví dụ|misalnya"
    r"|(?:\w+ ){0,3}(?:veranschaulichung|illustrati\w*|ilustra\w*|иллюстраци\w*)"
)
_SAMPLE = (
    r"examples?|samples?|illustrations?|pseudo-?code|beispiel(?:e|aufrufe?|code)?|exemples?"
    r"|ejemplos?|exemplos?|esempi[oa]?|voorbeeld(?:en|aanroep)?|przykład[yu]?|примеры?"
    r"|приклади?|e[kx]sempel|esimerkki|örnek|contoh"
)
_SUCH_AS_SIGNS = (
    "例如|比如|譬如|例えば|たとえば|譬えば|예를 들어|예를 들면|이를테면|مثلا|उदाहरण के लिए|למשל|เช่น"
    "|说明之用|説明のため|설명을 위한"
)
_SAMPLE_SIGNS = "例|サンプル|예시|예제|예|مثال|उदाहरण|דוגמה|ตัวอย่าง"
_CALL = (
    r"(?:calls?|tools?|functions?|formats?|syntax|usage|use|requests?|how|such|aufruf\w*|appels?"
    r"|format|utilisation|llamadas?|usos?|chamadas?|chiamat[ae]|aanroep\w*|gebruik|wywoła\w+"
    r"|użyci\w+|вызов\w*|использован\w*|invocations?|formato)"
)
_MARKED = re.compile(
    rf"\W*(?:{_SUCH_AS})(?!\w)"
    r"|\W*(?:(?:here|this|that|below|hier|das|dies|voici|ceci|aquí|esto|aqui|isto|ecco|questo|oto"
    r"|to|вот|это|dit|see|consider|siehe|voir|zie|zobacz|см)(?!\w)\W*(?:(?:is|are|ist|sind|va|est"
    r"|es|está|é|está|è|jest|as|also|noch)\W+){0,2})?"
    r"(?:(?:an?|the|one|two|three|some|several|few|another|more|other|next|first|ein\w*|weiteres"
    r"|une?|una?|otro|autre|um|outro"
    r"|un['’]?|een|nog|minimal|short|simple|typical|possible|hypothetical|kurzes|petit|jeszcze"
    r"|один|ещё)\W+)*"
    rf"(?:{_SAMPLE})(?:\s*[:：]|\s*\Z|\W+(?:\w+\W+){{0,3}}?(?:\w+['’])?{_CALL}(?!\w))"
    rf"|\W*(?:an?\W+(?:minimal|valid|simple)|(?:an?\W+)?(?:hypothetical|possible|typical|sample))"
    rf"\W+{_CALL}(?!\w)",
    re.IGNORECASE,
)
_ENDS_MARKED = re.compile(
    rf"(?<!\w)(?:{_SUCH_AS}|(?:an|one|another|ein|un|un|um|een) (?:{_SAMPLE})"
    rf"|(?:{_SAMPLE})(?: \w+['’]?)? ?{_CALL})\)?\W*\Z",
    re.IGNORECASE,
)
_MENTIONED = _words(rf"{_SUCH_AS}|{_SAMPLE}")
_FORMAT = _words(
    r"formats?|syntax|templates?|usage|snippets?|documentation|docs|manual|tutorials?|signature"
    r"|placeholders?|how to|would look|looks? like|see|vorlage|anleitung|schreibweise|aussehen"
    r"|formato|sintaxis|sintaxe|sintassi|plantilla|modelo|syntaxe|modèle|gabarit|opmaak|sjabloon"
    r"|składni\w*|szablon\w*|wyglądać|формат\w*|синтаксис\w*|шаблон\w*|выгляд\w+",
    "格式|语法|写法|模板|构文|構文|書き方|書式|形式|형식|문법|구문|のように|次の通り|如下",
)
_FORMAT_IS = re.compile(
    rf"(?:{_FORMAT.pattern})\s*(?:(?:is|are|ist|lautet|looks?|est|es|é|è|jest)(?!\w)"
    rf"|[是为は은는如:：]"
    rf"|\Z)",
    re.IGNORECASE,
)
# What others can do, in the last clause: "as you cannot see it, I print it:" is none.
_ADVICE = _words(
    r"(?:il suffit|basta \w+|wystarczy|volstaat|достаточно|only (?:has|have) to)"
    r"|(?:you|users?|developers?|someone|anyone|people)\s+(?:\w+\s+)?"
    r"(?:can|could|would|might|may|should|must|have to|need to|use|call|write|run|type)"
    r"|(?:one|we)\s+(?:can|could|would|might|may|should)"
    r"|(?:would|could|might) (?:be|look|have|call|use|write|send|run)"
    r"|in general|generally|if (?:i|we|you) (?:had|were|wanted?)"
    r"|(?<=, )(?:use|run|call|write|type)|\A\W*(?:use(?! of\b)|write|type)"
    r"|man (?:kann|könnte|würde|muss|schreibt|ruft|verwendet|nimmt)|(?:verwendet|schreibt"
    r"|ruft|nimmt)"
    r" man|(?:könn|kann|könnt)\w* (?:man|sie|du|ihr)|(?:du|sie|ihr) (?:kannst|könn\w+|musst|müssen"
    r"|sollte\w*)|würde|könnte|sähe"
    r"|on (?:peut|pourrait|écrit|doit|utilise|appelle)|(?:vous|tu) (?:pouv\w+|peux|dev\w+|pourr\w+)"
    r"|pourr\w+|serait"
    r"|se (?:puede|podría|escribe|usa|debe|utiliza|llama)|pued(?:es|e usted)|podr[ií]as?"
    r"|sería|debes?"
    r"|pode(?:-se|ria|s)?|você (?:pode|deve|poderia)|(?:usa|deve|escreve|chama)-se|seria"
    r"|si (?:può|potrebbe|scrive|usa|deve|chiama)|puoi|potresti|potrebbe|sarebbe"
    r"|(?:je|u|men) (?:kunt|kan|zou|moet)|(?:gebruikt|schrijft|roept) men|zou(?:den)?|kun je"
    r"|można|możesz|należy|trzeba|używa się|pisze się|mógłb\w*|mogł\w*"
    r"|можно|может(?:е|ся)|можешь|нужно|следует|бы|используют|пишут",
    "只需|可以|你能|您能|应该|应当|可用|できます|できる|場合は|書けます|書きます|てください"
    "|수 있|려면|하면 됩|세요",
)
# A call as a thing among others: with an indefinite article, or as the topic where there is none.
_ABOUT_CALLS = re.compile(
    r"(?<!\w)(?:an?|any|every|each|une?|una|uma?|ein(?:e[mnrs]?)?|een) (?:(?!is |are "
    r"|ist )\w+ ){0,2}?"
    r"(?:calls?|invocations?|requests?|aufruf\w*|appels?|llamadas?|chiamat[ae]|chamadas?"
    r"|aanroep\w*)"
    r"(?!\w)(?!\W*\Z)|(?:aussieht|eruit|como es|ressemble à|looks like) .{0,20}(?<!\w)(?:an?|une?"
    r"|una|uma"
    r"|ein\w*|een) (?:call|appel|llamada|chiamata|chamada|aufruf|aanroep)|ziet een aanroep"
    r"|ressemble un appel|\A\W*(?:wywołani\w+|вызов\w*) \w+ \w"
    r"|\A\W*(?:一次)?调用(?:可|通常|大|一般|往往)|呼び出しは(?!これ|次|以下)|호출은(?! ?(?:다음"
    r"|이것|아래))",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|i['’]\w+|we|let['’]?s|let me|ich|wir|je(?! voor)|j['’]\w+"
    r"|nous|yo|eu|io|ik|ja|я|мы)(?!\w)"
    r"|我|私|僕|제가|저는",
    re.IGNORECASE,
)
# Whoever it is, it is not the one who speaks.
_WHOEVER = re.compile(
    r"\A\W*(?:(?:if|when|falls|wenn|si|quand|se|als|gdyby|jeśli|если|кому)\W+(?:бы\W+)?)?"
    r"(?:some(?:body|one)|any(?:body|one)|who(?:ever)?|people|jemand|wer|quelqu['’]un|qui|alguien"
    r"|quien"
    r"|qualcuno|chi|alguém|quem|iemand|wie(?! \w+\W*\Z)|ktoś|kto|кто(?:-то)?|нужна)(?!\w)"
    r"|如果有人|的人(?:会|可以|就)|もし誰か|な人は|누군가|사람은",
    re.IGNORECASE,
)
# What would be: a supposition, or a verb in the conditional.
_SUPPOSED = re.compile(
    r"\A\W*should(?!\w)"
    r"|(?<!\w)(?:suppos(?:e|ing)|assum(?:e|ing)|imagine|angenommen|gesetzt den fall|stell dir vor"
    r"|supposons|imaginons"
    r"|supongamos|imagin(?:a|emos)|supponiamo|immagin(?:a|iamo)|suponhamos|stel (?:dat|je voor)"
    r"|załóżmy|przypuśćmy"
    r"|предположим|представим|допустим|would|gäbe|hätten?|würden?|sähe|zou(?:den)?|бы)(?!\w)"
    r"|(?<!\w)(?<!a )(?<!la )(?<!un )(?<!una )(?<!uma )(?<!na )(?<!da )(?<!de )"
    r"\w+(?:rai(?:t|ent)|rían?|rebbe(?:ro)?|[aei]riam?|-se-i?am?|łby|łaby|łoby|no by)(?!\w)|假设"
    r"|假如|倘若|想象一下|想像|仮に"
    r"|もし|でしょう|だろう|가정|다면",
    re.IGNORECASE,
)
# Where the words of others are.
_SOURCES = (
    r"documentation|docs|manual|handbook|tutorial|guide|readme|message|mail|letter|page|log"
    r"|transcript"
    r"|handbuch|anleitung|nachricht|brief|seite|protokoll|tutoriel|manuel|courrier|mensaje|carta"
    r"|página|messaggio|manuale|lettera|pagina|mensagem|handleiding|bericht|brief|podręcznik\w*"
    r"|samouczek|wiadomość|strona|руководств\w*|учебник\w*|письм\w+|сообщени\w+|страниц\w+"
)
_OF_SOURCE = re.compile(
    rf"(?<!\w)(?:{_SOURCES})(?!\w)|手册|教程|文档|邮件|マニュアル|チュートリアル|メール|설명서"
    rf"|튜토리얼|메일",
    re.IGNORECASE,
)
_ACTS = (
    r"(?:do|call|run|execute|send|use|make|follow|perform|be|write|invoke|issue|obey|comply|act)"
)
_REFUSAL = _words(
    r"(?:nothing|nichts|rien|nada|nulla|niets|nic|ничего)\W(?:\w+\W+){0,3}?(?:execut|run\b|ausgef"
    r"|exécut"
    r"|ejecut|esegu|uitgevo|wykon|выполн)\w*|(?:ausgeführt wird|se ejecuta|si esegue)\W(?:nichts"
    r"|nada"
    r"|nulla)|not doing (?:it|so|that)|(?:don['’]t|do not) (?:run|execute|call) (?:this|it|that)"
    rf"|(?:will|do|does|did|would|should|must|could|can|may|shall|wo|ca|have)"
    rf"(?:\s+not|n['’]t)\s+(?:\w+\s+)?{_ACTS}|(?:will|do|did|would) not\W*\Z|cannot {_ACTS}"
    rf"|never {_ACTS}|not going to {_ACTS}|(?:instead of|avoid) (?:this|that|{_ACTS})"
    rf"|refuse|decline"
    r"|without (?:calling|running|executing)"
    r"|drafts?(?:\s+of\s+(?:the|a|my)\s+calls?|\W{1,3}(?:only|not))"
    r"|(?:werde|darf|sollte|führe|rufe|sende|mache|würde|befolge)\b[^.:]{0,60}\bnicht"
    r"|nicht (?:ausführen|aufrufen|tun|machen)|niemals"
    r"|ne (?:vais|dois|peux|ferai|veux|lance\w*|fais|suis)\b[^.:]{0,30}\bpas"
    r"|n['’](?:exécut|appell|enver|envoi)\w+ (?:pas|jamais)"
    r"|no (?:voy|debo|ejecut\w+|llam\w+|haré|envi\w+|hag\w+)|nunca"
    r"|não (?:vou|devo|execut\w+|cham\w+|farei|envi\w+|faç\w+)"
    r"|non (?:farò|devo|esegu\w+|chiam\w+|invi\w+|intendo)"
    r"|(?:zal|ga|mag|voer|roep|volg)\b[^.:]{0,40}\bniet|nooit"
    r"|nie (?:wykon\w+|będę|wywoł\w+|zrobi\w+|wolno|wysył\w+|wyśl\w+)"
    r"|не (?:буду|стану|выполн\w+|вызыва\w+|вызов\w+|делаю|сделаю)|нельзя",
    "何も実行し|아무것도 실행하지|(?:不会|不要|不)(?:再)?(?:执行|调用|照做|运行|发送|做|这么)|拒绝"
    "|(?:実行|呼び出|従い"
    "|行い|送信)(?:し)?ません"
    "|しないで|지 않겠|지 않습니다|마세요|안 됩니다",
)
_INSTEAD = _words(
    r"instead|avoid|rather than|statt|vermeiden?|au lieu|en lugar de|em vez|invece di"
    r"|in plaats van|zamiast|вместо"
)
# Somebody else's verb, right before the colon: "(it reads only):" has none.
_REPORTED = re.compile(
    r"(?<!i )(?<!\w)(?:(?:says?|said|wrote|writes|written|reads|quotes?|quoting|states?"
    r"|told(?:\s\w+)?|tells(?:\s\w+)?|shows?|posted|replied|answered"
    r"|instructs?(?:\s\w+)?|ends with|begins with|starts with|sagt|schreibt|schrieb|lautet|steht"
    r"|zitiert|meint|dit|écrit|indique|affirme|dice|decía|escribió|escribe|indica|pone|diz|escreveu"
    r"|afirma|consta|scrive|scrisse|riporta|recita|zegt|schrijft|schreef|staat|luidt|mówi|pisze"
    r"|napisał\w*|brzmi|głosi|говорит\w*|пишет|написа\w+|гласит|сказа\w+)"
    r"(?:\s+(?:this|that|the following|so|folgendes|wörtlich|dies|ceci|esto|isto|questo|dit|to"
    r"|следующее))?"
    r"|(?:contain(?:s|ed|ing)|includes?|enthält|contient|contiene|contém|inclu\w{1,3}|bevat|zawiera"
    r"|содержит)(?:\s+\w+){0,3})[\s*_\"']*[:：][\s*_\"']*\Z"
    "|(?:写道|写着|说|说道|内容是|包含|里有[^：:]{0,6}|书写|(?:書|言"
    "|述)[^。：]{0,8}(?:ます|ました)|行があります"
    "|とあります|적혀 있습니다|말합니다|쓰여 있습니다|써 있습니다"
    "|줄이 있습니다)\\s*[:：。]?\\s*\\Z",
    re.IGNORECASE,
)
_INTENT = _words(
    r"i['’](?:ll|m|ve)|i (?!can|could|would|might|should|was|were|am told)\w+|let me"
    r"|let['’]s|we['’]ll"
    r"|going to|now|here (?:is|are|goes|it)|here['’]s|sure|okay|ok|first|next|then|\A\W*\w+ing"
    r"|(?:\A\W*|[,;:] )(?:\w+ing|\w+(?:[аяеуы]ю|рю|лю|шу|чу|щу)|\w+(?:am|uję)"
    r"|l[oaie]s? \w+o(?!\w)|(?!also|[ioe]nto|[eit]sto|questo|c[oó]mo|[cq]uando)\w{2,}o (?=\w))"
    r"|again|once more|noch\s?mals?|noch einmal|neue|de nouveau|nouvelle|de nuevo|otra vez|nueva"
    r"|nova|novamente|opnieuw|nogmaals|снова|ещё раз|новый"
    r"|ich|wir|jetzt|nun|zuerst|dann|hier|je(?! voor)|j['’]\w+|nous|voici|maintenant|d['’]abord"
    r"|voy|vamos|ahora|primero|aquí|consulto|busco|vou|agora|primeiro|aqui|sto|vado|ora|prima|ecco"
    r"|adesso|ik|we|nu|eerst|even|hier|teraz|zaraz|najpierw|oto|sprawdz\w+"
    r"|я|мы|сейчас|теперь|сначала|вот|давай\w*",
    "我|现在|让|这是|(?<!てい)ます|ましょう|겠습니다|게요|합니다|죠",
)
_AFTER_EXPLAINS = re.compile(
    r"\A\W*(?:(?:please )?(?:note|replace|change|adapt|where|(?:this|it|here|that) \w+s"
    r"|this (?:would|will|call|command|code|is"
    r"|shows|deletes"
    r"|sends)|that (?:is|would)|make sure|remember|keep in mind|be careful|it (?:is|would|will))"
    r"|(?:bitte )?beachte\w*|ersetz\w+|dabei|wobei|remplac\w+|notez|où|attention|reemplaz\w+"
    r"|sustituy\w+|ten en cuenta|donde|substitu\w+|observe|onde|sostitui\w+|nota|dove|vervang\w*"
    r"|let op|waarbij|zastąp\w*|zamień|uwaga|gdzie|замени\w*|обратите|где"
    "|请注意|注意|其中|ただし|なお|ここで|これは|주의|여기서|이)",
    re.IGNORECASE,
)
# What the reader is to change in it before use.
_ADAPT = _words(
    r"(?:replac|substitut|adapt|adjust)(?:e|ing)? (?:the|this|it|your|\w+ (?:with|by))"
    r"|change the|(?:ersetz|anpass|pass)\w*(?= sie|\W*\Z)|ersetzen|anpassen|remplac\w+"
    r"|adapt(?:er|ez|ar|are|e)|reemplac\w+|sustituy\w+|cambi(?:e|a|ar|are) (?:el|la|lo|il|il)"
    r"|substitu(?:a|ir)|troque|sostitui\w*|vervang\w*|pas \w+ \w+ aan|aanpassen|zastąp\w*|zamień"
    r"|zmień|замени\w*|измени\w*|поменя\w*|подставь\w*",
    "替换|换成|改成|置き換え|変えて|変更|바꾸|변경",
)
_PLACEHOLDER = re.compile(
    r"[\"'>=:(\s](?:(?<=[\"'])<[A-Za-z][\w .-]{0,40}>(?=[\"'])|\\?\.\.\.|\u2026|YOUR[_-][A-Z_]+"
    r"|your[_-]\w+|x{3,}|X{3,}|\[(?:your|the|insert)[ _][\w ]{1,40}\]|\{\{\s?\w{1,40}\s?\}\}"
    r"|<(?:your|the|insert)[ _-][\w -]{1,40}>)(?=[\"'<,)\s]|\Z)"
)
_STANDS_IN = re.compile(
    r"<[^<>]{1,40}>|\[[^\[\]]{1,40}\]|\{{1,2}[^{}]{1,40}\}{1,2}|\.\.\.|\u2026|x{3,}|X{3,}"
    r"|\$\{?[A-Z][A-Z_]+\}?|(?:your|YOUR|name_of|insert)[_ -]\w+"
)
_SENTENCE_END = re.compile(
    r"[.!?\u2026]+[)\"'\u201d*_]*\s+(?=\S)|[\u3002\uff01\uff1f](?=\S)|[!?](?=[^\x00-\x7f])"
)
_NO_SENTENCE = re.compile(r"(?:e\.\s?g|z\.\s?b|p\.\s?ex|p\.\s?ej|bijv|np)\.\s+\Z", re.IGNORECASE)
_ANY_COLON = re.compile(r"[:\uff1a\u2014\u2013-][\s*_\"')\]`]*\Z")
_TOKEN = re.compile(r"<[|\uff5c][^<>\n]{1,40}[|\uff5c]>")
_HEADING = re.compile(r"\s*(?:#{1,6}\s+[^\n]{1,60}|\*\*[^*\n]{1,60}\*\*:?)\s*\Z")
_STEP = re.compile(r"[ \t]*(?:\*\*)?(?:step\s+)?\d{1,2}[.):][ \t]", re.IGNORECASE)
_LONGEST_SENTENCE = 300
_LONGEST_REQUEST = 2000
_SIGNS_OF_WORDS = re.compile(r"[\u3040-\u9fff]")  # each is half a word
_TAG = re.compile(r"</?\w[^<>\n]{0,40}>")


def last_sentence(line: str) -> str:
    """Return the last sentence of a line.

    >>> last_sentence("It looks like the table is users. Counting:")
    'Counting:'
    """
    begin = 0
    for match in _SENTENCE_END.finditer(line):
        if not _NO_SENTENCE.search(line, 0, match.end()):
            begin = match.end()
    return line[begin:]


def _clause(sentence: str) -> str:
    # The last clause of a sentence, with the mark before it.
    at = max(sentence.rfind(mark, 0, len(sentence) - 2) for mark in ",;，；、")
    return sentence[max(at, 0) :]


@lru_cache(maxsize=256)
def evidence_of_lead(line: str, plain: bool) -> tuple[str, ...]:
    """Return the evidence in the line that leads to a call, of which () is the usual.

    plain: nothing but the line introduces the call, so that it has to end with a colon.

    >>> evidence_of_lead("For example:", True), evidence_of_lead("a sample of ten rows:", True)
    (('example',), ())
    """
    line = _TOKEN.sub(" ", line).strip()[-_LONGEST_SENTENCE:]
    is_question = line.rstrip(" *_").endswith(("?", "\uff1f"))
    introduces = is_question or _ANY_COLON.search(line) is not None
    if not line or (plain and not introduces):
        return ()
    sentence = last_sentence(line)
    names: list[str] = []
    if _introduces_example(sentence):
        names.append("example")
    if introduces and _REPORTED.search(sentence):
        names.append("reported")
    if _REFUSAL.search(sentence):
        names.append("refusal")
    elif _INSTEAD.search(sentence):
        names.append("instead")
    if _ADVICE.search(_clause(sentence)):
        names.append("advice")
    if _FORMAT.search(sentence):
        names.append("format")
    if introduces and not _FIRST_PERSON.search(sentence):
        part = sentence.rpartition(";")[2]
        is_supposed = _WHOEVER.search(part) or _SUPPOSED.search(part)
        if is_supposed and "advice" not in names:
            names.append("advice")
        if _OF_SOURCE.search(_clause(sentence)) and "reported" not in names:
            names.append("reported")
        if _ABOUT_CALLS.search(_clause(sentence).lstrip(" ,;，；、")):
            names.append("about-calls")
    if _STEP.match(line):
        names.append("step")
    if (is_question or _IF.match(sentence)) and _ASKS.search(sentence):
        names.append("asks")
    # Words about what is done count against others, and against a frame.
    is_undone = not {"about-calls", "advice", "asks", "refusal", "reported"}.isdisjoint(names)
    if not plain and introduces and _PAST.search(sentence):
        names.append("past")
    elif (names or not plain) and not is_undone and _INTENT.search(sentence):
        names.append("intent")
    return tuple(names)


def _introduces_example(sentence: str) -> bool:
    if _MARKED.match(sentence) or _ENDS_MARKED.search(sentence):
        return True
    # An example of a format, or of what others can do.
    is_about = _FORMAT.search(sentence) is not None or _ADVICE.search(sentence) is not None
    if is_about and _MENTIONED.search(sentence) and not _INTENT.search(sentence):
        return True
    format = _FORMAT_IS.search(sentence)
    if format is not None and (len(sentence.split()) < 3 or not _INTENT.search(sentence)):
        return True
    if sentence.isascii():
        return False
    size = len(sentence.rstrip(" :：*"))
    for signs, at_start in ((_SUCH_AS_SIGNS, 3), (_SAMPLE_SIGNS, 0)):
        for sign in re.finditer(signs, sentence):
            if sign.start() < at_start or size - sign.end() < 2 or (is_about and at_start):
                return True
    return False


# What somebody did before, and what came of it may follow.
_PAST = re.compile(
    r"(?<!\w)(?:i (?:(?!(?:ne|proce|succe|fe)ed)\w+ed|ran|sent|did|made|got|wrote)"
    r"|what i did|come from"
    r"|was (?:\w+ )?(?:run|sent|made|called)|ich habe|habe ich|j['’]ai|ho \w+[ts]o"
    r"|(?:llam|us|envi|ejecut)é|(?:cham|us|envi)ei|ik heb|я (?:вызва|отправи|сдела)л\w*"
    r"|(?:wywoła|wysła|zrobi)łe?m)(?!\w)|[叫呼用出行]\w{0,4}ました|了工具|调用了|했습니다",
    re.IGNORECASE,
)
# The reader is asked if it may be done.
_ASKS = re.compile(
    r"(?<!\w)(?:(?:shall|should|may|can) (?:i|we)|do you (?:want|agree)|go(?:-| )ahead|confirm"
    r"|is (?:this|that|it) (?:what|right|ok)|approv\w+|permission|up to you|agree"
    r"|let me know (?:if|whether) i|for your (?:word|answer|reply)|soll ich|darf ich|bestätig\w+"
    r"|einverstanden|zustimm\w+|dois-je|puis-je|voulez-vous|confirm\w+|d['’]accord"
    r"|continúo|procedo|(?:quiere|desea)s?|acuerdo|posso|devo|deseja|acordo"
    r"|concordar|vuole|zal ik|mag ik|akkoord|zgadzasz"
    r"|mam (?:wysłać|kontynuować)|продолжить|подтверд\w+|согласны)(?!\w)"
    r"|可以.{0,6}吗|是否|确认|同意|よろしい|しましょうか|確認して(?:ください|いただ)|了承"
    r"|할까요|진행|확인해 주|동의",
    re.IGNORECASE,
)
# Of the sentence after it: the work goes on, or its result is waited for.
_WORKS_ON = re.compile(
    rf"{_FIRST_PERSON.pattern}"
    r"|(?<!\w)(?:moment\w*|instant\w*|wait|stand by|hold on|now|back|minutes?|jetzt|maintenant"
    r"|ahora|agora|adesso|ora|nu|teraz|gleich|enseguida|attimo|zo|сейчас"
    r"|секунд\w*|минут\w*|chwil\w*|zaraz)(?!\w)"
    r"|\A\W*(?:after(?:wards| that)|then|danach|ensuite|après|después|depois|poi|dopo|daarna|potem"
    r"|потом|затем)(?!\w)"
    r"|稍等|请等|之后|马上|待ち|その後|すぐ|もうすぐ|잠시|기다|그다음|곧",
    re.IGNORECASE,
)
# What more may be done: the call itself needs no leave.
_MORE = _words(
    r"also|too|else|another|other|more|as well|next|auch|noch|weitere\w*|andere\w*|aussi|autres?"
    r"|plus|también|otr[oa]s?|más|também|outr[oa]s?|mais|anche|altr[oaie]|ook|nog|andere|też|także"
    r"|inn\w+|ещё|друг\w+|также",
    "也|还|其他|別|他に|また|또|더|다른",
)
_IF = re.compile(
    r"\W*(?:if|once|when|with your|should|wenn|falls|sobald|si|cuando|quand|se|als|zodra|jeśli|gdy"
    r"|если|когда)(?!\w)|\W*(?:如果|若|ご)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[a-zß-öø-ÿа-яё]|[,;)，；）、]|[をとにがはで]|(?:[을를은는이가]|라고|으?로)\s|[来并而后时的会]"
)
_IS_OVER = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\s*_\"')\]`]*\Z")
_LABEL = r"[^\w\n]{0,6}\w[\w ()./'’-]{0,40}(?:[:：]\W{0,4}|\*\*)(?=\s|\Z|[^\x00-\xff])"
# The sign of inches opens and closes nothing.
_OPEN_QUOTE = re.compile(r'(?:^|[\s(:])"[^"]*\Z')
_CLOSED_QUOTE = re.compile(r'[^"]*[^"\d]"(?!\w)')
_PAIRS = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』"))
_IS_LABEL = re.compile(_LABEL)
# A label that has a counterpart.
_CONTRAST = re.compile(
    r"\W*(?:expected|actual|wrong|right|bad|good|(?:in)?correct|(?:in)?valid|prompt|completion"
    r"|falsch|richtig|erwartet\w*|sortie attendue|salida esperada|(?:in)?correcto|saída esperada"
    r"|errato|corretto|fout|goed|źle|dobrze|неверно|верно)(?: \w+)? ?:"
    r"|\W*(?:预期|错误|正确|誤り|正しい|期待)"
    r"[^\n]{0,6}[:：]",
    re.IGNORECASE,
)
_HAS_LABEL = re.compile(rf"^{_LABEL}", re.MULTILINE)
_LIST_ITEM = re.compile(
    r"[ \t]*(?:[*_#]{1,3} ?)?(?:(?:step |schritt )?\d{1,2}[.):]|[-*•] )", re.IGNORECASE
)
_MARKUP_ENDS = re.compile(r"\\end\{|#\+end|[\"']{3}|`\}|[>%]{3}(?!\w)", re.IGNORECASE)


def is_long(words: str) -> bool:
    """Return True for more than a word or two, which say little."""
    return len(words.split()) > 2 or len(_SIGNS_OF_WORDS.findall(words)) > 5


def evidence_after(after: str) -> tuple[str, ...]:
    """Return the evidence in the text after a call, without the marks that close its frame."""
    words = _TAG.sub("", after).strip(" \t\r\n`~\"'")
    if not re.search(r"\w", words):
        return ("last",)
    first = words.partition("\n")[0][:_LONGEST_SENTENCE]
    is_working = _WORKS_ON.search(_SENTENCE_END.split(first)[0]) is not None
    # A word or two say little.
    names = ["words-after" if is_long(words) else "few-words-after"]
    last = words[-_LONGEST_SENTENCE:].rpartition("\n")[2]
    if any(_ASKS.search(line) and not _MORE.search(line) for line in (first, last)):
        return ("words-after", "asks")
    if words.endswith(("?", "\uff1f")) and is_long(words):
        names = ["words-after", "question"]
    if _REFUSAL.search(first) or any(
        _AFTER_EXPLAINS.match(sentence) or _ADVICE.search(sentence)
        for sentence in ([first] if _LIST_ITEM.match(first) else _SENTENCE_END.split(first))
        if not is_working
    ):
        names.append("explained")
    elif is_working:
        names.append("intent-after")
    if _ADAPT.search(first):
        names = [*(name for name in names if name != "explained"), "adapted"]
    return tuple(names)


def evidence_between(before: str, after: str) -> tuple[str, ...]:
    """Return the evidence in what is on both sides of a call.

    >>> evidence_between("You could call", "for that.")
    ('sentence',)
    """
    lead, rest = before.rstrip().rpartition("\n")[2], after.lstrip()
    names: list[str] = []
    # After a whole sentence the call is no part of one, and a word or two are none.
    goes_on = _GOES_ON.match(rest) and not _INTENT.match(rest) and not _IS_OVER.search(lead)
    is_inside = before[-1:] not in ("", "\n") or after[:1] not in ("", "\n")
    if goes_on and (
        (is_inside and is_long(rest.partition("\n")[0]))
        or (is_long(lead) and (is_inside or not _INTENT.search(lead)))
    ):
        names.append("sentence")
    if _CONTRAST.match(lead) and _HAS_LABEL.search(rest):
        names.append("contrast")
    paragraph = before.rpartition("\n\n")[2]
    follows = rest.partition("\n\n")[0]
    if any(paragraph.count(a) > paragraph.count(b) and b in follows for a, b in _PAIRS) or (
        _OPEN_QUOTE.search(paragraph) and _CLOSED_QUOTE.match(follows)
    ):
        names.append("quotation")
    if _MARKUP_ENDS.match(rest):
        names.append("closed-markup")
    return tuple(names)


_ONE_CALL = (
    r"(?:calls?|invocations?|aufruf\w*|appels?|llamadas?|chiamat[ae]|chamadas?|aanroep\w*"
    r"|wywoła\w+|вызов\w*)"
)
_ASKED = re.compile(
    r"(?:explain|describe|document) .{0,20}(?:tool|function)[- ]calls?(?!\w)"
    r"|(?:what|how) .{0,30}(?<!\w)calls? (?:would |should )?(?:looks? like|is written)"
    r"|how (?:would|do|could|should) \w+ (?:write|format|phrase) (?:a|the|such) .{0,9}calls?(?!\w)"
    r"|(?:just|only) (?:show|print|write|give)(?: me)? (?:the|a) .{0,9}calls?(?!\w)"
    r"|wie sieht .{0,30}aufruf.{0,20} aus|à quoi ressemble .{0,20}appel|se escribe .{0,12}llamada"
    r"|como se escreve .{0,12}chamada|che aspetto ha .{0,12}chiamata"
    r"|как (?:выгляд|пиш)\w+ .{0,9}вызов|调用.{0,6}(?:格式|语法|写法)"
    r"|呼び出し.{0,9}(?:書き|書く|形式)|호출.{0,9}(?:형식|어떻게)"
    rf"|(?<!\w)(?<!for )(?:{_SAMPLE})(?: +(?:\w+['’])?\w+){{0,5}}? +(?:\w+['’])?{_ONE_CALL}(?!\w)"
    rf"|(?<!\w){_ONE_CALL} (?:{_SAMPLE})(?!\w)|(?<!\w)(?:beispielaufruf|voorbeeldaanroep)"
    rf"|(?:{_SAMPLE_SIGNS}).{{0,12}}(?:呼び出|调用|호출|ツール|工具|도구)",
    re.IGNORECASE,
)


def asks_for_example(text: str) -> bool:
    """Return True if a request asks for an example of a call.

    >>> asks_for_example("Show me an example of such a call."), asks_for_example("Call me at ten.")
    (True, False)
    """
    return _ASKED.search(text[-_LONGEST_REQUEST:]) is not None


def is_label(before: str) -> bool:
    """Return True if the last line of a text begins with a label, as "Right:" is one."""
    return _IS_LABEL.match(before.rstrip().rpartition("\n")[2]) is not None


def is_placeholder(value: str) -> bool:
    """Return True if a value as a whole stands for another one.

    >>> [is_placeholder(v) for v in ("{to}", "YOUR_NAME", "Ann")]
    [True, True, False]
    """
    return _STANDS_IN.fullmatch(value) is not None


def has_placeholder(text: str) -> bool:
    """Return True if a value in the text of a call is a placeholder.

    >>> has_placeholder('{"to": "<name>"}'), has_placeholder('{"to": "Ann"}')
    (True, False)
    """
    return _PLACEHOLDER.search(text) is not None
