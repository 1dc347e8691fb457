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
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple


class Evidence(NamedTuple):
    """One piece of evidence. A positive weight says that the call is shown."""

    name: str
    weight: float
    reason: str
    decides: bool = True  # one of these has to be among what says that a call is shown


_TABLE = (
    # how the call is written
    Evidence("delimiters", -2.0, "it has the delimiters of its format", False),
    Evidence("fence", -1.0, "a fence holds nothing but the call", False),
    Evidence("line", -1.0, "the call has lines of its own", False),
    # frames
    Evidence("code", 9.0, "it is inside quoted code"),
    Evidence("quotation", 9.0, "it is inside a quotation"),
    Evidence("in-fence", 2.0, "it is inside a fence"),
    Evidence("other-code", 3.0, "other lines stand in the same fence"),
    Evidence("indented", 2.5, "it is in an indented block"),
    Evidence("indented-token", 0.5, "it is indented", False),
    Evidence("block", 0.25, "a line of marks opens a block before it", False),
    Evidence("closed-block", 4.0, "the same marks close the block after it"),
    Evidence("diff", 5.0, "it is a line of a diff"),
    Evidence("diff-line", 0.5, "its line begins with the sign of a diff", False),
    Evidence("transcript", 5.0, "it is a line of a transcript"),
    Evidence("page", 4.0, "it is an element of a page"),
    Evidence("beside-element", 0.5, "an element of a page is before it", False),
    Evidence("step", 0.5, "a numbered step leads to it", False),
    Evidence("among", 1.5, "another call before it is only shown"),
    Evidence("lazy", 5.0, "it goes on with a quotation"),
    # the sentence before
    Evidence("example", 3.5, "the words before it introduce an example"),
    Evidence("reported", 3.5, "the words before it are about what somebody else says"),
    Evidence("source", 2.0, "the words before it name a text of others"),
    Evidence("refusal", 2.5, "the words before it say that it is not done"),
    Evidence("instead", 1.0, "the words before it are about something else to do", False),
    Evidence("advice", 2.25, "the words before it say what others can do"),
    Evidence("about-calls", 2.5, "the words before it are about calls in general"),
    Evidence("format", 1.0, "the words before it are about a format"),
    Evidence("past", 2.75, "the words before it tell what was done"),
    Evidence("unsaid", 0.75, "the words around it do not say that it is done", False),
    Evidence("asked-about", 0.75, "the words before it do not say that it is done"),
    Evidence("matter", -1.5, "the words around it name a value of it", False),
    Evidence(
        "named",
        -1.5,
        "the words before it name its tool, and they or the request a value of it",
        False,
    ),
    Evidence("intent", -1.5, "the words before it say that it is done", False),
    Evidence("told", 1.25, "the words before it tell what happened"),
    Evidence("in-general", 1.25, "the words before it are about all such calls"),
    Evidence("case", 1.5, "the words before it are about a case that may come"),
    Evidence("points", 1.25, "the words before it point to it"),
    Evidence("others", 1.5, "the words before it are about what somebody else does"),
    Evidence("options", 2.5, "labels before it number several calls"),
    # the call, and what follows
    Evidence("placeholder", 2.5, "a value of it is a placeholder"),
    Evidence("last", -1.0, "nothing follows it", False),
    Evidence("words-after", 1.0, "words follow it", False),
    Evidence("few-words-after", 0.0, "a word or two follow it", False),
    Evidence("explained", 1.5, "the words after it explain it", False),
    Evidence("parameters", 3.0, "the words after it explain its parameters"),
    Evidence("adapted", 2.5, "the words after it say what to change in it"),
    Evidence("asks", 3.25, "the words around it ask if it may be done"),
    Evidence("question", 1.25, "a question to the reader ends the answer", False),
    Evidence("sentence", 3.5, "a sentence goes on after it"),
    Evidence("repeated-labels", 3.5, "it is one of several lines with the same label"),
    Evidence("labels", 3.0, "labels are before and after it", False),
    Evidence("contrast", 3.0, "it is held against something else"),
    Evidence("letter", 3.0, "it is in a letter"),
    Evidence("closed-markup", 4.0, "a block of markup ends after it"),
    Evidence("thought", 6.0, "it is among what the answer thinks"),
    Evidence("intent-after", -1.5, "the words after it go on with the work", False),
    Evidence("request", 3.5, "the request asks for an example"),
)
EVIDENCE: dict[str, Evidence] = {evidence.name: evidence for evidence in _TABLE}
_AT_MOST_AFTER = -1.0  # what the text after a call can say at most for it


def score(names: Iterable[str]) -> float:
    """Return the sum of the weights: more than zero says that the call is shown.

    >>> score(["delimiters", "in-fence", "last"]), score(["delimiters", "in-fence", "example"])
    (-1.0, 3.5)
    """
    return sum([EVIDENCE[name].weight for name in names])


def is_settled(names: Collection[str]) -> bool:
    """Return True if the call is shown whatever follows it."""
    return is_shown(names) and score(names) + _AT_MOST_AFTER > 0


def is_shown(names: Collection[str]) -> bool:
    """Return True if the evidence says that a call is only shown.

    What follows a call never says that alone: an answer goes on to explain, to ask and to plan.
    """
    return score(names) > 0 and any(EVIDENCE[name].decides for name in names)


def reasons(names: Iterable[str]) -> str:
    """Return the evidence that decided that a call is shown, as one phrase, the heaviest first.

    >>> reasons(["delimiters", "in-fence", "words-after", "example"])
    'the words before it introduce an example, it is inside a fence'
    """
    against = sorted(
        {EVIDENCE[name] for name in names}, key=lambda e: (not e.decides, -e.weight, e.name)
    )
    total = sum(evidence.weight for evidence in against if evidence.weight < 0)
    decisive: list[str] = []
    for evidence in against:
        if evidence.weight > 0 and (evidence.decides or total <= 0):
            decisive.append(evidence.reason)
            total += evidence.weight
    return ", ".join(decisive)


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
    r"formats?|shapes?|of the form|der form|de la forme|de la forma|da forma|della forma|feste form"
    r"|form[ea] fi(?:xe|ja|xa|ssa)|syntax|templates?|usage|snippets?|signature|placeholders?"
    r"|how to|would look|looks? like|(?<!to )see|vorlage|anleitung|schreibweise|aussehen"
    r"|formato|sintaxis|sintaxe|sintassi|plantilla|modelo|syntaxe|modèle|gabarit|opmaak|sjabloon"
    r"|składni\w*|szablon\w*|wyglądać|формат\w*|синтаксис\w*|шаблон\w*|выгляд\w+",
    "形の|形は|格式|语法|写法|模板|构文|構文|書き方|書式|形式|형식|문법|구문|のように|次の通り|如下",
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
    r"|one\s+(?:can|could|would|might|may)"
    r"|(?:would|could|might) (?:be|look|have|call|use|write|send|run)"
    r"|(?:one|an|another|eine|une|una|uma) (?:option|way|possibility|alternative|möglichkeit"
    r"|possibilité|opción|posibilidad|opção|possibilità)|(?:might|may|could|would) help"
    r"|in general|generally|if (?:i|we|you) (?:had|were|wanted?)"
    r"|(?<=, )(?:use|run|call|write|type)|\A\W*(?:use(?! of\b)|write|type)"
    r"|man (?:kann|könnte|muss|\w+t)|(?!geht|gibt)\w+t man|(?:könn|kann|könnt)\w* (?:man|sie|du"
    r"|ihr)|(?:du|sie|ihr) (?:kannst|könn\w+|musst|müssen"
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
    r"(?<!\w)(?:i|i['’]\w+|we|let['’]?s|let me|ich|wir|(?:(?<=[,;.] )|(?<=que )|\A\W*)je(?! voor)"
    r"|j['’]\w+"
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
    r"documentation|docs|manual|handbook|tutorials?|guide|readme|message|mail|letter|page|log"
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
    r"|(?:ich|ik) (?:\w+ )?(?:nicht|niet)[*_ ]*:\W*\Z"
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
# What somebody says or contains is still to be found out: "Let me see what the file says:".
_WONDERS = re.compile(
    r"(?<!\w)(?<! is )(?<! are )(?<!['’]s )(?<!voici )(?<!ecco )(?<!вот )"
    r"(?:what|who|where|how|whether|was|wer|ob|ce que?|qué|cosa|o que|wat|co|что)(?!\w)",
    re.IGNORECASE,
)
_INTENT = _words(
    r"i['’](?:ll|m|ve)|i (?!can|could|would|might|should|was|were|am told|have been)\w+|let me"
    r"|let['’]s|we['’]ll"
    r"|going to|now|here (?:is|are|goes|it)|here['’]s|sure|okay|ok|(?<!the )first|next|then"
    r"|\A\W*\w+ing"
    r"|(?:\A\W*|[,;:] )(?:\w+ing|\w+(?:[аяеуы]ю|рю|лю|шу|чу|щу)|\w+(?:am|uję)"
    r"|l[oaie]s? \w+o(?!\w)|(?!also|[ioe]nto|[eit]sto|questo|c[oó]mo|[cq]uando)\w{2,}o (?=\w))"
    r"|again|once more|noch\s?mals?|noch einmal|neue|de nouveau|nouvelle|de nuevo|otra vez|nueva"
    r"|nova|novamente|opnieuw|nogmaals|снова|ещё раз|новый"
    r"|ich|wir|jetzt|nun|zuerst|dann|hier|je(?! voor)|j['’]\w+|nous|voici|maintenant|d['’]abord"
    r"|voyons|vediamo|veamos|vejamos"
    r"|voy|vamos|ahora|primero|aquí|consulto|busco|vou|agora|primeiro|aqui|sto|vado|ora|prima|ecco"
    r"|adesso|ik|we|nu|eerst|even|hier|teraz|zaraz|najpierw|oto|sprawdz\w+"
    r"|я|мы|сейчас|теперь|сначала|давай\w*",
    "我|现在|让|这是|(?<!てい)ます|ましょう|겠습니다|게요|합니다|죠",
)
_AFTER_EXPLAINS = re.compile(
    r"\A\W*(?:(?:please )?(?:replace|change|adapt|where|(?:this|here|that) (?:shows|deletes|sends"
    r"|is)"
    r"|make sure|remember|be careful)"
    r"|ersetz\w+|dabei|wobei|remplac\w+|où|reemplaz\w+"
    r"|sustituy\w+|donde|substitu\w+|observe|onde|sostitui\w+|dove|vervang\w*"
    r"|let op|waarbij|zastąp\w*|zamień|uwaga|gdzie|замени\w*|обратите|где"
    "|其中|ただし|なお|ここで|여기서)",
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
    # Most of what follows white space begins none: one look at it, instead of one for each.
    r"[\"'>=:(\s](?=[<.\\\u2026YyxX\[{])"
    r"(?:(?<=[\"'])<[A-Za-z][\w .-]{0,40}>(?=[\"'])|\\?\.\.\.|\u2026|YOUR[_-][A-Z_]+"
    r"|your[_-]\w+|x{3,}|X{3,}|\[(?:your|the|insert)[ _][\w ]{1,40}\]|\{\{\s?\w{1,40}\s?\}\}"
    r"|<(?:your|the|insert)[ _-][\w -]{1,40}>)(?=[\"'<,)\s]|\Z)"
)
_STANDS_IN = re.compile(
    r"<[^<>]{1,40}>|\[[^\[\]]{1,40}\]|\{{1,2}[^{}]{1,40}\}{1,2}|\.\.\.|\u2026|x{3,}|X{3,}"
    r"|\$\{?[A-Z][A-Z_]+\}?|(?:your|YOUR|name_of|insert)[_ -]\w+"
)
_CALLS = _words(
    r"(?:tool|function|invocation)s?|calls?|\w*aufruf\w*|\w*werkzeug\w*|funktion\w*|appels?|outils?"
    r"|fonctions?|llamadas?|herramientas?|funci[oó]n\w*|chamadas?|ferramentas?|funç\w+"
    r"|chiamat[ae]|strument[oi]|funzion[ei]|aanroep\w*|functies?"
    r"|wywoła\w+|narzędzi\w*|funkcj\w+|вызов\w*|инструмент\w*|функци\w+",
    "调用|工具|函数|呼び出|ツール|関数|호출|도구|함수",
)
# What calls are made of, and what they may be without.
_PART = r"argument\w*|parameters?|param[eè]tr\w+|argomento|argumento|аргумент\w*|параметр\w*"
_PARTS = _words(
    rf"{_PART}|parsers?|syntax|placeholders?|schemas?|whitespace|format",
    "参数|引数|인수|매개변수",
)
_NTH_PART = _words(
    rf"(?:first|second|third|last|erste\w*|zweite\w*|premier|second|deuxième|primer|segundo"
    rf"|primeiro|primo|secondo|eerste|tweede|pierwszy|drugi|первый|второй) (?:\w+ )?(?:{_PART})",
    "第[一二三1-3]个参数|[1-3]番目の引数|最初の引数|번째 인수",
)
_OPTIONAL = _words(
    r"optional\w*|(?:leave|left) .{1,20}out|omit\w*|may be missing|weglassen|weggelassen|entfallen"
    r"|facultati\w+|optionnel\w*|omettre|omis|opcional\w*|omitir\w*|facoltativ\w*|omettere"
    r"|optioneel|weglaten|opcjonaln\w*|pomin\w+|необязательн\w*|опустить",
    "可选|省略|생략",
)
# Texts that somebody wrote.
_WRITTEN = _words(
    r"answers?|repl(?:y|ies)|responses?|outputs?|lines?|entry|messages?|antwort\w*|ausgabe|zeile"
    r"|eintrag|réponses?|sortie|ligne|respuestas?|salida|línea|respostas?|saída|linha|rispost[ae]"
    r"|riga|antwoord|regel|odpowied\w+|wiersz|ответ\w*|строк\w+|запис\w+",
    "回答|回复|输出|応答|出力|行は|답|응답|출력",
)
# Those who are neither the speaker nor the reader.
_OTHERS = _words(
    r"\w*bots?|robot\w*|robô\w*|agent\w*|models?|modell[eo]?|modèles?|modelos?|модел\w+"
    r"|candidates?|candidat\w*|kandidat\w*|кандидат\w*|attackers?|hackers?|angreifer\w*|pirate"
    r"|attaquant|atacante|aggressore|aanvaller|złodziej|злоумышленник\w*|vendors?|servers?|serveur"
    r"|servidor|сервер\w*|clients?|scripts?|parsers?|analyseur|analizador|tests?|testen"
    r"|logs?|protokoll|journal|registro|logboek|dziennik\w*|журнал\w*|reviewers?|students?|he|she"
    r"|they|their|er|elle|él|ella|ele|ela|hij|zij|он|она|hosts?|programm\w*|programs?|программ\w*",
    "机器人|程序|プログラム|프로그램|模型|攻击者|候选人|服务器|测试|脚本|日志|ボット|ロボット|モデル|攻撃者|候補者|サーバ|テスト"
    "|ログ|봇|모델|공격자|후보|서버|테스트|로그",
)
# It is pointed to, as what somebody says, writes or gets.
_POINTS = re.compile(
    r"(?<!\w)(?:(?:this|so|thus|dies(?:es|er|en)?|ainsi|ceci|cela|esto|así|isto|assim|questo|così"
    r"|dit|zo"
    r"|to|tak|это|так)(?: \w{1,4})?|(?:the following|as follows|folgend\w*|suivante?s?|siguientes?"
    r"|seguintes?|seguent[ei]|volgende?|następując\w+|следующ\w+)(?: \w+){0,2})\W*\Z"
    "|(?:这样|如下|以下|这个|これ|次|このよう|こう|다음|이렇게|이것).{0,9}\\Z",
    re.IGNORECASE,
)
_SAYS = _words(
    r"wr[io]t(?:e|es|ten|ing)|typ(?:e|es|ed)|enter(?:s|ed)?|say(?:s|ing)?|said|prints?|printed"
    r"|answer(?:s|ed)"
    r"|repl(?:y|ies|ied)|respon(?:ds?|ded)|past(?:e|es|ed)|contains?|consists?|reads|looks? like"
    r"|emits?"
    r"|emitted|expects?|expected|schreib\w*|gib|eingeben|enthält|lautet|antwortet|steht|zeigt"
    r"|écri\w+|saisi\w+|contient|répond|indique|escrib\w+|contiene|responde|dice|indica|escrev\w+"
    r"|contém|diz|scriv\w+|risponde|riporta|schrijf\w*|bevat|staat|antwoordt|pisz\w*|zawiera"
    r"|odpowiada|пиш\w*|введ\w+|содержит|отвечает|гласит",
    "输入|写|写着|包含|回复|显示|書|入力|含|表示|입력|적|쓰|포함|표시",
)
# What is over.
_OVER = _words(
    r"was|were|had|did|(?!need)(?<!been )\w{3,}ed|wrote|said|sent|ran|got|gave|came|took|made|saw"
    r"|wurden?|waren?|hatten?|schrieb|sagte|schickte|sandte|antwortete|schlug|fehlgeschlagen"
    r"|(?:ist|hat|habe[nt]?) .{0,30}ge\w+|a (?:été )?\w+[éu]e?|avez \w+é|était|fu[et]|era|foi"
    r"|ha \w+[td]o"
    r"|h?as \w+[td]o|\w{2,}ó|\w{2,}[oe]u|è \w+[tdi][oa]|werd(?:en)?|schreef|zei|stond|mislukte"
    r"|\w{2,}ł[aoy]?|został\w*|(?!ес)\w{2,}(?:л|ла|ло|ли)(?:с[ья])?|был\w*",
    r"了|过|ました|でした|[었았했렸]",
)
_IN_GENERAL = re.compile(
    r"\W*(?:(?:an?|any|every|each|all|jeder?|alle|chaque|tout|cada|tod[oa]s?|ogni|tutt[ei]|elke?"
    r"|każd[ea]|кажд\w+|les|las|los|as|os|le|gli|de) (?:(?!is |are )\w+ ){0,2}?)?"
    r"(?:(?:tool |function )?(?<!the )(?<!this )(?:calls(?! for)|invocations)|\w*aufrufe|appels"
    r"|llamadas|chamadas|chiamate"
    r"|aanroepen|wywołania|вызовы)(?!\w)(?! *[:：])"
    r"|\W*(?:an?|any|every|each|jeder|chaque|cada|ogni|elke|każde|каждый) (?:\w+ )?(?:call|aufruf"
    r"|appel|llamada|chamada|chiamata|aanroep|wywołanie|вызов)(?!\w)(?! (?:to|is|for|на|к)(?!\w))"
    r"|\W*(?:一次|每次|所有)?(?:工具|函数)?调用(?:有|由|都|是|的)"
    r"|(?:ツール|関数)?呼び出しの?(?:は|形)|(?:도구 |함수 )?호출(?:은|에는)",
    re.IGNORECASE,
)
_YOURS = re.compile(
    r"(?:.*(?<!\w)you (?:wrote|sent|said|pasted|posted|ran|called|used|typed|had)"
    r"|\W*(?:you(?:r \w+)?(?! (?:\w+ )?(?:asked|want\w*|need\w*|request\w*|mention\w*))|sie"
    r"|ihre? \w+|vous"
    r"|votre|usted|has|ha|su \w+|você|sua|lei|ha|вы|您|貼り))(?!\w)",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[\w.:/-]{1,128}\b")
_CODE_WORD = re.compile(r"`(\w{1,40})`")
_SIGN_OFF = re.compile(r"[^\n.!?:。]{2,40}[,，。]?\n{1,2}[^\W\d_][^\n.!?:]{0,30}\Z")
_LABELLED = re.compile(r"^[ \t]*(?:\*\*)?([^\W\d_][\w ]{0,24}?)(?:\*\*)?[ ]?[:：]", re.MULTILINE)
_STEP_LABELS = {
    *("thought", "action", "action input", "observation", "step", "plan", "reason", "reasoning"),
    *("note", "next", "call", "tool", "schritt", "étape", "paso", "passo", "stap", "krok", "шаг"),
}
_NUMBERED = re.compile(
    r"\W*([^\W\d_][^\W\d]{1,15})\W+(?:\d{1,2}|[A-D])(?:\W*\Z|\W|(?=[^\x00-\xff]))"
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
_FIRST_WORDS = 4
_LONGEST_REQUEST = 2000
_SIGNS_OF_WORDS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")  # each is half a word
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


def _asks(line: str) -> bool:
    return line.rstrip(" *_").endswith(("?", "\uff1f"))


_VALUE = re.compile(
    r"[:=(,\[]\s*(?:[\"']([^\"'\n]{2,80})[\"']|(-?\d{1,20}(?:\.\d{1,20})?)(?!\w))"
    r"|>\s*([^<>\n]{2,80}?)\s*</"
)


def names_call(line: str, call: str, tools: Collection[str], asked: str = "") -> bool:
    """Return True if a line names the tool of the call that follows, and a value of it is in the
    line or in the last words of the user, `asked`.

    call: its text, or its arguments as JSON where `tools` has its own tool alone.

    >>> call = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    >>> line = "To get the weather in Paris, you can use the `get_weather` tool with:"
    >>> names_call(line, call, ["get_weather"]), names_call("Use `get_weather`:", call, [])
    (True, False)
    """
    words = set(_IDENTIFIER.findall(line))
    if not any(name in words and (len(tools) == 1 or name in call) for name in tools):
        return False
    line = f"{line} {asked[-_LONGEST_REQUEST:]}".lower()
    values = ("".join(match.groups("")) for match in _VALUE.finditer(call))
    return any(
        value not in tools and re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", line)
        for value in values
    )


def introduces(line: str) -> bool:
    """Return True if a line ends as one that something follows, or as a question."""
    return _asks(line) or _ANY_COLON.search(line) is not None


@lru_cache(maxsize=256)
def evidence_of_lead(line: str, plain: bool) -> tuple[str, ...]:
    """Return the evidence in the line that leads to a call, of which () is the usual.

    plain: nothing but the line introduces the call, so that it has to end with a colon.

    >>> evidence_of_lead("For example:", True), evidence_of_lead("a sample of ten rows:", True)
    (('example',), ())
    """
    line = _TOKEN.sub(" ", line).strip()[-_LONGEST_SENTENCE:]
    if not line or (plain and not introduces(line)):
        return ()
    is_question, is_lead = _asks(line), introduces(line)
    sentence = last_sentence(line)
    names: list[str] = []
    if _introduces_example(sentence):
        names.append("example")
    acts = is_working_on(sentence)
    if is_lead and _REPORTED.search(sentence) and not (acts and _WONDERS.search(sentence)):
        names.append("reported")
    if _REFUSAL.search(sentence):
        names.append("refusal")
    elif _INSTEAD.search(sentence):
        names.append("instead")
    if _ADVICE.search(_clause(sentence)):
        names.append("advice")
    if _FORMAT.search(sentence):
        names.append("format")
    if is_lead and not _FIRST_PERSON.search(sentence):
        part = sentence.rpartition(";")[2]
        is_supposed = _WHOEVER.search(part) or _SUPPOSED.search(part)
        if is_supposed and "advice" not in names:
            names.append("advice")
        if _OF_SOURCE.search(_clause(sentence)) and "reported" not in names:
            names.append("source")
        if _ABOUT_CALLS.search(_clause(sentence).lstrip(" ,;，；、")):
            names.append("about-calls")
    if _STEP.match(line):
        names.append("step")
    if (is_question or _IF.match(sentence)) and _ASKS.search(sentence):
        names.append("asks")
    # Words about what is done count against others, and against a frame.
    is_undone = not {"about-calls", "advice", "asks", "refusal", "reported"}.isdisjoint(names)
    if marked := acts and _MARKED.match(sentence):  # "here is" an example says nothing is done
        sentence = sentence[marked.end() :]
        acts = is_working_on(sentence)
    is_own = acts or _FIRST_PERSON.search(sentence) is not None
    if is_lead and not is_own and _REFUSAL.search(_clause(sentence)):
        names.append("unsaid")
    if not plain and is_lead and _PAST.search(sentence):
        names.append("past")
    elif (
        (names or not plain)
        and not is_undone
        and acts
        and (_FIRST_PERSON.search(sentence) or not _acts_for_others(sentence))
    ):
        names.append("intent")
    return tuple(names)


def _introduces_example(sentence: str) -> bool:
    if _MARKED.match(sentence) or _ENDS_MARKED.search(sentence):
        return True
    # An example of a format, or of what others can do.
    is_about = _FORMAT.search(sentence) is not None or _ADVICE.search(sentence) is not None
    if is_about and _MENTIONED.search(sentence) and not _INTENT.search(sentence):
        return not sentence.rstrip().endswith((".", "。"))
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
# Of the sentence after it: the work goes on, or something is still to come.
_WORKS_ON = re.compile(
    rf"{_FIRST_PERSON.pattern}"
    r"|(?<!\w)(?:will|(?:\w+['’])?ll|follows|wait\w*|stand by|hold on|now|back|moment\w*|instant\w*"
    r"|minutes?|seconds?|let me know|shortly|patience|patient|in progress"
    r"|wird|folgt|warten|geduld|jetzt|gleich|suit|suivra|patient\w*|maintenant|bientôt"
    r"|será|a continuación|esper[ea]|ahora|enseguida|aguarde|agora|sarà|attend\w+|attimo|adesso"
    r"|zal|volgt|nu|straks|będzie|zaraz|poczeka\w*|chwil\w*|teraz|будет|подожд\w+|сейчас|минут\w*"
    r"|секунд\w*)(?!\w)"
    r"|\A\W*(?:after(?:wards| that)?|then|next|danach|dann|ensuite|après|después|luego|depois|poi"
    r"|dopo"
    r"|daarna|potem|потом|затем|once|as soon as|sobald|dès que|en cuanto|assim que|appena|zodra"
    r"|как только)(?!\w)"
    r"|稍等|请等|之后|马上|接下来|待ち|次に|その後|すぐ|もうすぐ|しばらく|잠시|기다|그다음|곧",
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
_PARTICLE = re.compile(
    r"[をとにがはで](?!い)|(?:[을를은는이가]|라고|으?로)\s|[来并而]|然后|[a-zß-öø-ÿа-яё]+[.…]"
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
    r"|before|after|don['’]t|do|never|always|falsch|richtig|schlecht|gut|vorher|nachher"
    r"|erwartet\w*|faux|juste|(?:in)?correct"
    r"|avant|après|sortie attendue|mal|bien|antes|después|salida esperada|(?:in)?correcto|errado"
    r"|certo|depois"
    r"|saída esperada|errato|sbagliato|giusto|corretto|prima|dopo|fout|goed|voor|na|źle|dobrze"
    r"|(?:не)?(?:правильно|верно)|было|стало)(?: \w+)? ?(?:[:：]|\*\*\Z)"
    r"|\W*(?:预期|错误|正确|修改[前后]|誤り|正しい|悪い例|良い例|変更[前後]|期待|잘못|올바|변경)"
    r"[^\n]{0,6}[:：]",
    re.IGNORECASE,
)
_JUDGED = re.compile(r"\s*[\u274c\u2717\u2718\u2705\u2714\U0001f6ab\U0001f44d\U0001f44e]\W*\Z")
_HAS_LABEL = re.compile(rf"^{_LABEL}", re.MULTILINE)
_LIST_ITEM = re.compile(
    r"[ \t]*(?:[*_#]{1,3} ?)?(?:(?:step |schritt )?\d{1,2}[.):]|[-*•] )", re.IGNORECASE
)
_MARKUP_ENDS = re.compile(r"\\end\{|#\+end|[\"']{3}|`\}|[>%]{3}(?!\w)", re.IGNORECASE)


def is_long(words: str) -> bool:
    """Return True for more than a word or two, which say little."""
    return len(words.split()) > 2 or len(_SIGNS_OF_WORDS.findall(words)) > 3


def _acts_for_others(sentence: str) -> bool:
    clause = _clause(sentence).lstrip(" ,;，；、")
    others = _OTHERS.search(clause)
    return others is not None and clause.count(" ", 0, others.start()) < _FIRST_WORDS


def evidence_about(line: str) -> tuple[str, ...]:
    """Return the evidence that the line before a call is about others, or about what is over.

    >>> evidence_about("This call failed:"), evidence_about("I found the table:")
    (('told',), ())
    """
    line = _TOKEN.sub(" ", line).strip()[-_LONGEST_SENTENCE:]
    sentence = last_sentence(line)
    if _HEADING.match(line) or _FIRST_PERSON.search(sentence):
        return ()
    if _IN_GENERAL.match(sentence):
        return ("in-general",)
    if _IS_OVER.search(line):
        return ()
    if _acts_for_others(sentence):
        return ("others",)
    if _IF.match(sentence) and _CALLS.search(sentence):
        return ("case",)
    clause = _clause(sentence)
    is_told = _YOURS.match(sentence) or _CALLS.search(sentence) or _WRITTEN.search(sentence)
    if is_told and _OVER.search(clause):
        return ("told",)
    return ("points",) if _POINTS.search(clause) or _SAYS.search(clause) else ()


_HAS_WORDS = re.compile(r"\w")


def evidence_after(after: str) -> tuple[str, ...]:
    """Return the evidence in the text after a call, without the marks that close its frame."""
    words = _TAG.sub("", after).strip(" \t\r\n`~\"'")
    if not _HAS_WORDS.search(words):
        return ("last",)
    first = words.partition("\n")[0][:_LONGEST_SENTENCE]
    begin = _SENTENCE_END.split(first)[0]
    is_working = _WORKS_ON.search(begin) is not None and not _acts_for_others(begin)
    is_item = _LIST_ITEM.match(first) is not None
    # A word or two say little.
    names = ["words-after" if is_long(words) else "few-words-after"]
    last = words[-_LONGEST_SENTENCE:].rpartition("\n")[2]
    if any(_ASKS.search(line) and not _MORE.search(line) for line in (first, last)):
        return ("words-after", "asks")
    if words.endswith(("?", "\uff1f")) and is_long(words) and not _MORE.search(last):
        names = ["words-after", "question"]
    if _REFUSAL.search(first) or any(
        _AFTER_EXPLAINS.match(sentence)
        or _ADVICE.search(sentence)
        or (_tells(sentence) and not is_item)
        for sentence in ([first] if is_item else _SENTENCE_END.split(first))
        if not is_working
    ):
        names = ["words-after", *names[1:], "explained"]
    elif is_working:
        names.append("intent-after")
    if _ADAPT.search(first):
        names = [*(name for name in names if name != "explained"), "adapted"]
    return tuple(names)


def _tells(sentence: str) -> bool:
    # It is about calls or about what came of them.
    return any(words.search(sentence) for words in (_PARTS, _OPTIONAL, _WRITTEN, _OTHERS, _OVER))


def explains_parameters(after: str, values: Iterable[object]) -> bool:
    """Return True if words after a call explain its parameters, and say no value of it.

    >>> explains_parameters("Here `city` is a name.", ["Oslo"])
    True
    """
    first = after.strip().partition("\n")[0]
    if _FIRST_PERSON.search(first) or any(str(v) and str(v) in first for v in values):
        return False
    return any(words.search(first) for words in (_CODE_WORD, _OPTIONAL, _NTH_PART))


def evidence_between(before: str, after: str) -> tuple[str, ...]:
    """Return the evidence in what is on both sides of a call.

    >>> evidence_between("You could call", "for that.")
    ('sentence',)
    """
    lead, rest = before.rstrip().rpartition("\n")[2], after.lstrip()
    names: list[str] = []
    # After a whole sentence the call is no part of one, and a word or two are none.
    has_words = re.search(r"\w", rest) is not None
    goes_on = has_words and _GOES_ON.match(rest) and not _IS_OVER.search(lead)
    is_inside = before[-1:] not in ("", "\n") or after[:1] not in ("", "\n")
    breaks_off = lead.rstrip().endswith((",", "，", "、"))
    is_open = breaks_off or not (_ANY_COLON.search(lead) or is_working_on(last_sentence(lead)))
    is_within = before[-1:] not in ("", "\n") and after[:1] not in ("", "\n")
    if goes_on and (
        (is_inside and is_long(rest.partition("\n")[0]) and not _WORKS_ON.search(rest))
        or (is_long(lead) and (is_inside or is_open))
        or (is_open and _PARTICLE.match(rest))
        or (is_within and is_long(lead) and _GOES_ON.match(rest))
    ):
        names.append("sentence")
    if (_CONTRAST.match(lead) and _HAS_LABEL.search(rest)) or _JUDGED.match(lead):
        names.append("contrast")
    if _labels_repeat(before, after):
        names.append("repeated-labels")
    paragraph = before.rpartition("\n\n")[2]
    follows = rest.partition("\n\n")[0]
    if any(paragraph.count(a) > paragraph.count(b) and b in follows for a, b in _PAIRS) or (
        _OPEN_QUOTE.search(paragraph) and _CLOSED_QUOTE.match(follows)
    ):
        names.append("quotation")
    if _MARKUP_ENDS.match(rest):
        names.append("closed-markup")
    if _SIGN_OFF.match(rest.rstrip()) and is_long(lead) and not is_working_on(lead):
        names.append("letter")
    return tuple(names)


def _labels_repeat(before: str, after: str) -> bool:
    # The label of the call's line, or of one before it, is that of a line after it as well, or the
    # two next to it have a word in common ("Expected output:", "Actual output: none").
    known = [label.lower() for label in _LABELLED.findall(before)]
    labels = [label.lower() for label in _LABELLED.findall(after)]
    if {*known} & {*labels} - _STEP_LABELS:
        return True
    lead = before.rstrip().rpartition("\n")[2]
    if not (known and labels and lead.lower().strip(" :：*").endswith(known[-1])):
        return False
    says = after.lstrip().partition("\n")[0].rstrip().endswith((":", "："))
    return not says and bool({*known[-1].split()} & {*labels[0].split()} - _STEP_LABELS)


def is_working_on(lead: str) -> bool:
    """Return True if the words before a call say that the speaker acts."""
    return _INTENT.search(lead) is not None and not _PAST.search(lead)


def number_of(lead: str) -> str:
    """Return the label that numbers a call, "" if there is none.

    >>> number_of("Option 1:"), number_of("Users:")
    ('option', '')
    """
    match = _NUMBERED.match(lead)
    label = match[1].lower() if match else ""
    return "" if label in _STEP_LABELS else label


_ONE_CALL = (
    r"(?:calls?|invocations?|aufruf\w*|appels?|llamadas?|chiamat[ae]|chamadas?|aanroep\w*"
    r"|wywoła\w+|вызов\w*)"
)
_ASKED = re.compile(
    r"(?:explain|describe|document) .{0,20}(?:tool|function)[- ]calls?(?!\w)"
    r"|(?:what|how) .{0,30}(?<!\w)calls?(?: (?:of|to|for) \S{1,40})?"
    r" (?:would |should )?(?:looks? like|is written)"
    r"|how (?:would|do|could|should) \w+ (?:write|format|phrase) (?:a|the|such) .{0,9}calls?(?!\w)"
    r"|how (?:would|could) (?:you|one|we) (?:call|invoke)"
    r" (?:\w+_\w+|(?:the |a |your )?\w+(?=\W*[?.]))"
    r"|(?:what|which) (?:\w+ )?call (?:would|could|will) (?:you|one|we)"
    r" (?:call|invoke|write|make|have|emit|send|use)(?!\w)"
    r"|(?:just|only) (?:show|print|write|give)(?: me)? (?:the|a) .{0,9}calls?(?!\w)"
    rf"|(?:draft|sketch|spell out|write (?:down|out)) (?:me )?(?:the|an?) (?:\w+ )?{_ONE_CALL}"
    r"(?=\W*(?:\Z|[.,;!?]|(?:for (?:me|my|us|our|review)|so|but|without)(?!\w)))"
    rf"|(?:tool|function)[- ]{_ONE_CALL} (?:syntax|format)(?!\w)"
    rf"|dry[- ]run of .{{0,20}}{_ONE_CALL}(?!\w)"
    r"|wie (?:sieht|ein|der|dein|würde|lautet) .{0,30}aufruf.{0,30} (?:aus|aussieht|aussehen)(?!\w)"
    r"|à quoi ressemble .{0,20}appel|se escribe .{0,12}llamada|cómo sería .{0,12}llamada"
    r"|como se escreve .{0,12}chamada|che aspetto ha .{0,12}chiamata"
    r"|как (?:выгляд|пиш)\w+ .{0,9}вызов|调用.{0,6}(?:格式|语法|写法)"
    r"|呼び出し.{0,9}(?:書き|書く|形式)|호출.{0,9}(?:형식|어떻게)"
    rf"|(?<!\w)(?<!for )(?:{_SAMPLE})(?: +(?:\w+['’])?\w+){{0,5}}? +(?:\w+['’])?{_ONE_CALL}(?!\w)"
    rf"|(?<!\w){_ONE_CALL} (?:{_SAMPLE})(?!\w)|(?<!\w)(?:beispielaufruf|voorbeeldaanroep)"
    rf"|(?:{_SAMPLE_SIGNS}).{{0,12}}(?:呼び出|调用|호출|ツール|工具|도구)"
    rf"|(?:呼び出し|调用|호출).{{0,16}}(?:{_SAMPLE_SIGNS})",
    re.IGNORECASE,
)
# What is asked for is not to be done: "it", not something else that the user names.
_NOT_DONE = _words(
    r"(?:don['’]?t|do not|never|without|must not|not to) (?:actually |really )?"
    r"(?:run(?:ning)?|execut(?:e|ing)|invok(?:e|ing)|trigger(?:ing)?|perform(?:ing)?"
    r"|(?:(?<=actually )|(?<=really ))(?:do(?:ing)?|call(?:ing)?|send(?:ing)?|mak(?:e|ing)))"
    r" (?:it|that|this|them|anything)"
    r"(?! (?:\w*ous|\w*ive|else|twice|again|more|until|before|unless|if|when)(?!\w))"
    r"|nothing (?:must|may|should|is to) be (?:run|executed|sent|called)"
    r"|ohne (?:ihn|sie|es|das) (?:wirklich |tatsächlich )?auszuführen"
    r"|führe? (?:ihn|sie|es) (?:aber )?nicht aus|nichts ausführen"
    r"|sans (?:l['’]|le |la |les )?exécuter|ne (?:l['’]|le |la )exécute[sz]? pas"
    r"|no (?:la|lo) (?:ejecutes?|hagas?)|sin ejecutar(?:la|lo)?"
    r"|non eseguirl[oa]|senza eseguirl[oa]|não [oa] execut[ea]|sem execut[aá](?:r|-l[oa])"
    r"|не (?:выполняй|запускай)(?:те)? его|не выполняя",
    "不要(?:真的|实际)?(?:执行|运行)|実行(?:は)?し(?:ない|なく)|실행하지",
)
_WORD_OF_A_CALL = re.compile(
    rf"(?<!\w)(?:{_ONE_CALL}|{_SAMPLE}|syntax|draft|(?:how|what) would you|show me what)(?!\w)"
    r"|调用|呼び出し|호출",
    re.IGNORECASE,
)


def asks_for_example(text: str) -> bool:
    """Return True if a request asks for an example of a call.

    >>> asks_for_example("Show me an example of such a call."), asks_for_example("Call me at ten.")
    (True, False)
    """
    text = text[-_LONGEST_REQUEST:]
    if _ASKED.search(text):
        return True
    return _NOT_DONE.search(text) is not None and _WORD_OF_A_CALL.search(text) is not None


def is_statement(lead: str) -> bool:
    """Return True for a line of words that is neither a heading nor says that the speaker acts."""
    if _HEADING.match(lead) or _LIST_ITEM.match(lead) or is_working_on(lead):
        return False
    return is_long(lead)


def is_contrast(before: str) -> bool:
    """Return True if the last line of a text begins with a label that has a counterpart."""
    return _CONTRAST.match(before.rstrip().rpartition("\n")[2]) is not None


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
