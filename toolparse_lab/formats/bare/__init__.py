"""Family: calls as a word and an object with bare keys, `call:f{a:<|"|>x<|"|>,b:3}`."""
